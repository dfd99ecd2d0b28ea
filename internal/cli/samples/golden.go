package samples

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/printer"
)

var update = flag.Bool("update", false, "write the golden files")

// Golden compares a text with the golden file of this name, or writes it with -update.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

// Fits wants a text for a terminal to stay within it, and within a screen
// unless everything was asked for.
func Fits(t *testing.T, text string, style printer.Style, all bool) {
	t.Helper()
	if style.Width == 0 || style.Color {
		return
	}
	lines := strings.Split(text, "\n")
	if !all && len(lines) > 64 { // with every kind of trouble at once
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len([]rune(line)) > style.Width {
			t.Errorf("wider than %d: %s", style.Width, line)
		}
	}
}
