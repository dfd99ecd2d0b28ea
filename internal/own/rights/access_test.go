package rights

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestUsersAreGivenOnce: by a user who stays an administrator, and again without a change. rights_test.go tests their
// rights.
func TestUsersAreGivenOnce(t *testing.T) {
	t.Parallel()
	p := newProtected(t)
	admin := p.as(t, "admin-east")
	waittest.Must(t, Provision(t.Context(), admin, "east", "admin-east", Users("east")))
	if err := Provision(t.Context(), admin, "east", "remote", Users("east")); err == nil || !strings.Contains(err.Error(), "admin-east") {
		t.Errorf("who would be shut out was let do it: %v", err)
	}
}

func TestUsersFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	read := func(text string) ([]User, error) {
		t.Helper()
		waittest.Must(t, os.WriteFile(file, []byte(text), 0o600))
		return ReadUsers(file, "east")
	}
	users, err := read("users:\n- {name: remote-west, role: remote}\n- {name: east, role: remote}\n- {name: boss, role: root}\n")
	waittest.Must(t, err)
	if diff := cmp.Diff([]User{{"remote-west", "remote"}, {"boss", "root"}}, users); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"users: [{role: remote}]":          "has no name",
		"users: [{name: x, role: reader}]": `role "reader"`,
		"users: [{name: x, rule: remote}]": "rule",
		"users: {":                         "users: [{name: remote-east, role: remote}]",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadUsers(file+"x", "east"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
