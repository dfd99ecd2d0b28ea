package codes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

func TestEveryEntryIsWhole(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^MESH-[1-7]\d{3}$`)
	seen := make(map[codes.Code]bool)
	before := ""
	for _, e := range codes.All() {
		if !form.MatchString(string(e.Code)) || seen[e.Code] {
			t.Errorf("%q is no code, or that of two findings", e.Code)
		}
		seen[e.Code] = true
		if codes.Code(before) >= e.Code {
			t.Errorf("%s comes before %s", before, e.Code)
		}
		before = string(e.Code)
		if e.Title == "" || e.Title != strings.TrimSuffix(e.Title, ".") {
			t.Errorf("%s: title %q", e.Code, e.Title)
		}
		for what, text := range map[string]string{"cause": e.Cause, "remedy": e.Remedy} {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
				t.Errorf("%s: its %s is no sentence on one line: %q", e.Code, what, text)
			}
		}
		if s := e.Severity; s != codes.Info && s != codes.Warning && s != codes.Error {
			t.Errorf("%s: severity %q", e.Code, s)
		}
	}
}

// TestEveryOwnerProvesItsCodes searches for the tests that call codestest.Reached.
func TestEveryOwnerProvesItsCodes(t *testing.T) {
	t.Parallel()
	proved := make(map[string]bool)
	call := regexp.MustCompile(`codestest\.Reached\(t, codes\.(\w+),`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range call.FindAllSubmatch(text, -1) {
			proved[strings.ToLower(string(m[1]))] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range codes.All() {
		if !proved[string(e.Owner)] {
			t.Errorf("no test proves that %s is reached: codestest.Reached(t, codes.…) for %q", e.Code, e.Owner)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]codes.Code{
		"MESH-1001": "MESH-1001", "mesh-1001": "MESH-1001", " 1001 ": "MESH-1001",
		"MESH-0000": "", "": "", "MESH": "", "100": "",
	} {
		if e, known := codes.Find(text); e.Code != want || known != (want != "") {
			t.Errorf("%q: %q, %t", text, e.Code, known)
		}
	}
}
