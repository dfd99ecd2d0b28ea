// Package scripttest tests rules with scripts, which can be read without knowledge of Go. A script is a sequence of
// blocks: events, one per line, then "----", then the expected output, up to an empty line. "#" begins a comment.
package scripttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Player executes the lines of a script.
type Player interface {
	// Do executes a line.
	Do(line string) error
	// Said returns the output of the lines so far; each of its lines ends with a newline.
	Said() string
}

// Run plays the scripts of testdata/*.txt, each with its own player, and compares the player's output with the
// script's. With update it writes the output to the script.
func Run(t *testing.T, update bool, newPlayer func() Player) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		after := play(t, file, string(before), newPlayer())
		switch {
		case update:
			if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
				t.Fatal(err)
			}
		case after != string(before):
			t.Errorf("%s comes to something else (the flag -update writes it; see git diff):\n%s", file, after)
		}
	}
}

// play returns the script with the output of its blocks.
func play(t *testing.T, file, text string, p Player) string {
	t.Helper()
	var out strings.Builder
	expected := false // the lines are the output of the block before
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "":
			expected = false
		case expected:
			continue
		case line == "----":
			expected = true
			out.WriteString("----\n" + p.Said())
			continue
		case !strings.HasPrefix(line, "#"):
			if err := p.Do(line); err != nil {
				t.Fatalf("%s:%d: %v", file, i+1, err)
			}
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
