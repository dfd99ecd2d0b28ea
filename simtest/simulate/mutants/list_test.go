package main

import (
	"os"
	"strings"
	"testing"
)

// TestMutantsAreOfTheSources: each text that a mutant replaces is there once, no name is used twice, and
// found.txt has a line for each.
func TestMutantsAreOfTheSources(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	found, err := os.ReadFile("found.txt")
	if err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(string(found), "\n"+m.name+"\t") {
			t.Errorf("found.txt has no line for %q: run go run ./simtest/simulate/mutants -only %[1]q", m.name)
		}
	}
}
