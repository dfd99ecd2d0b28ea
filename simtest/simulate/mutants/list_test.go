package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestEachDefectCanBePlanted: its file has the text once, and found.txt has a line for it.
func TestEachDefectCanBePlanted(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		waittest.Must(t, err)
		return string(text)
	}
	found := read("simtest/simulate/mutants/found.txt")
	for _, m := range mutants() {
		if n := strings.Count(read(m.file), m.old); n != 1 {
			t.Errorf("%s: %s has the text %d times, not once", m.name, m.file, n)
		}
		if !strings.Contains(found, "\n"+m.name+"\t") {
			t.Errorf("found.txt has no line for %q: run go run ./simtest/simulate/mutants -only %[1]q", m.name)
		}
	}
}
