package readability

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoCommentsHaveNoHardTurns: the comments of all Go files avoid the turns of phrases.txt.
func TestGoCommentsHaveNoHardTurns(t *testing.T) {
	t.Parallel()
	phrases, read := readPhrases(t), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules" || d.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		read++
		return commentTurns(t, path, phrases)
	})
	if err != nil || read < 1000 {
		t.Errorf("%d files: %v", read, err)
	}
}

// commentTurns reports the hard turns in the comments of a file.
func commentTurns(t *testing.T, path string, phrases []phrase) error {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			for _, s := range sentences(strings.Join(strings.Fields(paragraph), " ")) {
				for _, p := range phrases {
					if found := p.pattern.FindString(s); found != "" {
						t.Errorf("%s: %q, write: %s\n\t%s", files.Position(group.Pos()), found, p.instead, s)
					}
				}
			}
		}
	}
	return nil
}
