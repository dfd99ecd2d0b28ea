package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestEachDefectCanBePlanted: its file has the text once, and the document has a row for it.
func TestEachDefectCanBePlanted(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		waittest.Must(t, err)
		return string(text)
	}
	document := read("docs/correctness.md")
	for _, m := range mutants() {
		if n := strings.Count(read(m.file), m.old); n != 1 {
			t.Errorf("%s: %s has the text %d times, not once", m.name, m.file, n)
		}
		if !strings.Contains(document, "\n| "+m.name+" |") {
			t.Errorf("docs/correctness.md has no row for %q: run go run ./simtest/simulate/mutants -only %[1]q", m.name)
		}
	}
}
