package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsRefused: a change after the base was written is refused if it is incompatible and the changelog does not name
// the package under Unreleased, and a newer release needs a base of its own.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	const (
		changelog = "# Changelog\n\n## Unreleased: 0.2.0\n\n## 0.1.0\n\n- `pkg/a` is new.\n"
		a         = `// Package a imports others, of which the base needs the types.
package a

import (
	"context"
	"strings"

	"example.com/m/internal/i"
	"example.com/m/pkg/a/b"
	"example.com/m/pkg/a/internal/c"
)

type Thing struct {
	Size int // a comment
	name string
}

type Maker interface{ Make(context.Context) (*Thing, error) }

func New(of b.Kind, _ c.Inner) *Thing { return &Thing{name: strings.ToUpper(i.Name(string(of))), Size: 1} }

func (t *Thing) Name() string { return help(t.name) }

func help(s string) string { return s }
`
	)
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "CHANGELOG.md": changelog, "pkg/a/a.go": a, base: "",
		"pkg/a/b/b.go":          "package b\n\ntype Kind string\n",
		"pkg/a/internal/c/c.go": "package c\n\ntype Inner string\n\nconst Other = 1\n",
		"pkg/d/d.go":            "package d\n\nconst Const = 1\n",
		"internal/i/i.go":       "package i\n\nfunc Name(s string) string { return s }\n",
	}
	dir := project(t, files)
	if err := run(dir, true); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, base))
	if err != nil {
		t.Fatal(err)
	}
	files[base] = string(text)
	for name, c := range map[string]struct {
		file, old, new string
		want           string // in the error; none without
	}{
		"nothing":                    {},
		"an addition":                {file: "pkg/a/a.go", old: "Size int", new: "Size int; Weight int"},
		"what nobody sees":           {file: "pkg/a/a.go", old: "help", new: "support"},
		"a function is removed":      {file: "pkg/a/a.go", old: "func New", new: "func newThing", want: "`pkg/a`: New: removed"},
		"a field":                    {file: "pkg/a/a.go", old: "Size int", new: "Size int64", want: "`pkg/a`: Thing.Size: changed from int to int64"},
		"a method of an interface":   {file: "pkg/a/a.go", old: "Make(context", new: "Close(); Make(context", want: "`pkg/a`: Maker.Close: added"},
		"a signature":                {file: "pkg/a/a.go", old: "Name() string", new: "Name() any", want: "`pkg/a`: (*Thing).Name: changed from"},
		"a package within":           {file: "pkg/a/b/b.go", old: "string", new: "int", want: "`pkg/a/b`: Kind: changed from string to int"},
		"a package is removed":       {file: "pkg/d/d.go", old: "package d", new: "//go:build never\n\npackage d", want: "`pkg/d`: removed"},
		"an internal package":        {file: "pkg/a/internal/c/c.go", old: "Other", new: "Another"},
		"announced":                  {file: "CHANGELOG.md", old: "0.2.0\n", new: "0.2.0\n\n### Changed\n\n- `pkg/d` says something else.\n"},
		"announced, another package": {file: "CHANGELOG.md", old: "0.2.0\n", new: "0.2.0\n\n### Changed\n\n- `pkg` and `pkg/d/e`.\n", want: "`pkg/d`: Const: value changed"},
		"announced elsewhere":        {file: "CHANGELOG.md", old: "0.2.0\n", new: "0.2.0\n\n- `pkg/d` is new.\n", want: "`pkg/d`: Const: value changed"},
		"announced in the past":      {file: "CHANGELOG.md", old: "- `pkg/a`", new: "- `pkg/d`, `pkg/a`", want: "`pkg/d`: Const: value changed"},
		"a release":                  {file: "CHANGELOG.md", old: "## Unreleased: 0.2.0", new: "## 0.2.0", want: "newer release"},
		"does not compile":           {file: "pkg/a/a.go", old: "help(t.name)", new: "t.help", want: "t.help undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := maps.Clone(files)
			changed[c.file] = strings.ReplaceAll(changed[c.file], c.old, c.new)
			delete(changed, "")
			if strings.HasPrefix(name, "announced") {
				changed["pkg/d/d.go"] = "package d\n\nconst Const = 2\n"
			}
			dir := project(t, changed)
			switch err := run(dir, false); {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// project returns a directory with these files.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
