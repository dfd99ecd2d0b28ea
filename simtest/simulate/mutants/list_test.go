package main

import (
	"os"
	"strings"
	"testing"
)

// TestDefectsAreInTheSources: each text that a defect replaces is there once, and no name is used twice.
func TestDefectsAreInTheSources(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, m := range mutants() {
		source, err := os.ReadFile("../../../" + m.file)
		if err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: %s has %q %d times, not once", m.name, m.file, m.old, n)
		}
		if names[m.name] {
			t.Errorf("%s is there twice", m.name)
		}
		names[m.name] = true
	}
}
