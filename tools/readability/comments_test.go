package readability

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var comment = regexp.MustCompile(`^\s*# (\S.*)$`)

// commented is the text of the comments of a file, with a paragraph for each. Indented lines of a comment are code.
func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if m := comment.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			b.WriteString(m[1])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestManifestsReadWell: the comments in files that an operator applies and configures have the words of the documents.
func TestManifestsReadWell(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, pattern := range []string{"*.yaml", "chart/*.yaml", "chart/examples/*.yaml", "packages/*.yaml", "packages/default", "packages/*.service"} {
		files, err := filepath.Glob(filepath.Join(root, "deploy", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			all.WriteString(commented(read(t, file)))
		}
	}
	all.WriteString(template.ReplaceAllString(read(t, filepath.Join(root, "deploy", "chart", "templates", "NOTES.txt")), ""))
	check(t, "the comments in deploy", measure(all.String(), readVocabulary(t), readPhrases(t)))
}
