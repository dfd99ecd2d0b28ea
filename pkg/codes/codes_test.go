package codes_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

var update = flag.Bool("update", false, "write docs/codes.md")

func TestEveryEntryIsWhole(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^MESH-[1-7]\d{3}$`)
	seen := make(map[codes.Code]bool)
	for _, e := range codes.All() {
		if !form.MatchString(string(e.Code)) || seen[e.Code] {
			t.Errorf("%q is no code, or that of two findings", e.Code)
		}
		seen[e.Code] = true
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

// TestEveryConstantIsRegistered reads the source: nobody can forget the entry.
func TestEveryConstantIsRegistered(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			text, is := n.(*ast.BasicLit)
			if !is || !regexp.MustCompile(`^"MESH-\d{4}"$`).MatchString(text.Value) {
				return true
			}
			code, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			constants++
			if _, known := codes.Find(code); !known {
				t.Errorf("%s: %s has no entry", file, code)
			}
			return true
		})
	}
	if n := len(codes.All()); constants != n {
		t.Errorf("%d constants for %d entries", constants, n)
	}
}

// TestEveryOwnerProvesItsCodes looks for the tests that call codestest.Reached.
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
		"MESH-1001": codes.ClusterAdded, "mesh-1001": codes.ClusterAdded, " 1001 ": codes.ClusterAdded,
		"MESH-0000": "", "": "", "MESH": "", "100": "",
	} {
		if e, known := codes.Find(text); e.Code != want || known != (want != "") {
			t.Errorf("%q: %q, %t", text, e.Code, known)
		}
	}
}

func TestTheDocumentIsThatOfTheRegistry(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "codes.md")
	want := codes.Document()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/codes.md is not that of the registry (go test ./pkg/codes -update writes it):\n%s", d)
	}
}
