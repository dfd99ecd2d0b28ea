// Package othermodule runs the tests of other modules, which import our packages like any user's module. Only tests use
// it.
package othermodule

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Test copies a module, whose go.mod replaces ours by CHECKOUT or by ../.., and runs its tests. The module needs only
// modules that ours needs; it may be the first to read the go.mod of some of them. It leaves the checkout as it is.
// Files may end in .txt.
func Test(t *testing.T, from, checkout string) {
	t.Helper()
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no module, %v", from, err)
	}
	replaced := strings.NewReplacer("=> CHECKOUT", "=> "+checkout, "=> ../..", "=> "+checkout)
	for _, file := range append(files, filepath.Join(checkout, "go.sum")) {
		text, err := os.ReadFile(file)
		if err == nil {
			to := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".txt"))
			err = os.WriteFile(to, []byte(replaced.Replace(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=3m", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
