package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPapers: each command has its page, with the text of its help, and each shell its completion; the same sources
// give the same files.
func TestPapers(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := write("v1.2.3", dir, "1700000000"); err != nil {
			t.Fatal(err)
		}
	}
	for name, parts := range map[string][]string{
		"man/mesh-agent.1":            {`.TH "MESH-AGENT" "1" "Nov 2023" "mesh-agent v1.2.3"`, "mesh-agent-status(1)"},
		"man/mesh-agent-get.1":        {"List objects of the mesh, or show one object", "--selector"},
		"man/mesh-agent-top.1":        {"--once"},
		"man/mesh-agent-demo.1":       {"mesh-sim"},
		"man/mesh-sim.1":              {`.TH "MESH-SIM" "1" "Nov 2023" "mesh-sim v1.2.3"`, "--churn", "mesh-sim-ctl(1)"},
		"man/mesh-sim-ctl-freeze.1":   {"--for"},
		"completions/mesh-sim":        {"__start_mesh-sim"},
		"completions/mesh-agent":      {"__start_mesh-agent"},
		"completions/_mesh-agent":     {"#compdef mesh-agent"},
		"completions/mesh-agent.fish": {"complete -c mesh-agent"},
	} {
		text, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), part) {
				t.Errorf("%s: %q is not in it", name, part)
			}
		}
		if again, err := os.ReadFile(filepath.Join(second, name)); err != nil || string(again) != string(text) {
			t.Errorf("%s is another one the second time: %v", name, err)
		}
	}
	if err := write("v1.2.3", first, "yesterday"); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("a date that is none: %v", err)
	}
}
