// Package doctest extracts blocks from documents, so that tests run exactly what users are asked to write.
package doctest

import (
	"os"
	"strings"
	"testing"
)

// Block returns an indented block of a Markdown file, from the line that begins with first, with some words replaced:
// pairs of an old and a new text, like those of [strings.NewReplacer]. The test fails if the block, or an old text in
// it, is missing.
func Block(t testing.TB, file, first string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const indent = "    "
	_, after, found := strings.Cut("\n"+string(text), "\n"+indent+first)
	if !found {
		t.Fatalf("%s has no block that begins with %q", file, first)
	}
	var block strings.Builder
	for line := range strings.Lines(indent + first + after) {
		inside, indented := strings.CutPrefix(line, indent)
		if !indented && strings.TrimSpace(line) != "" {
			break
		}
		block.WriteString(inside)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(block.String(), replace[i]) {
			t.Fatalf("%s: the block that begins with %q lacks %q", file, first, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(block.String())
}
