// Package words refuses words in names, comments, texts and documents that the
// glossary rules out (docs/glossary.md).
package words

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the numbers in allowed.txt to what is left")

var (
	root   = filepath.Join("..", "..")
	quoted = regexp.MustCompile("`([^`]+)`")
)

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// parts calls visit with the parts of the names and words in a text: "lastBeat" has
// "last" and "Beat".
func parts(text string, visit func(string)) {
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && isUpper(text[i]) {
			i++
		}
		for i < len(text) && isLower(text[i]) {
			i++
		}
		if i > start {
			visit(text[start:i])
			i--
		}
	}
}

// rules are the words that are ruled out: parts of names and of texts in lower case, and whole names.
type rules struct{ words, names map[string]bool }

// readRules reads the table "Do not write" of the glossary.
func readRules(t *testing.T) rules {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Do not write\n")
	if !found {
		t.Fatal("docs/glossary.md has no section \"Do not write\"")
	}
	r := rules{map[string]bool{}, map[string]bool{}}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			switch as := strings.TrimSpace(cells[2]); as {
			case "word":
				r.words[m[1]] = true
			case "name":
				r.names[m[1]] = true
			default:
				t.Fatalf("docs/glossary.md: %s is ruled out as %q: \"word\" or \"name\"", m[1], as)
			}
		}
	}
	if len(r.words) == 0 || len(r.names) == 0 {
		t.Fatal("docs/glossary.md rules nothing out")
	}
	return r
}

// found are the places of each word that is ruled out, as FILE:LINE.
type found map[string][]string

// text looks for words in a text that begins at that line.
func (r rules) text(in found, file string, line int, text string) {
	for l := range strings.Lines(text) {
		parts(l, func(word string) {
			if word = strings.ToLower(word); r.words[word] {
				in[word] = append(in[word], fmt.Sprintf("%s:%d", file, line))
			}
		})
		line++
	}
}

// source looks for words in a Go file.
func (r rules) source(in found, file string, source []byte) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(file, -1, len(source)), source, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return
		case token.IDENT, token.COMMENT, token.STRING:
			line := set.Position(at).Line
			if kind == token.IDENT && r.names[text] {
				in[text] = append(in[text], fmt.Sprintf("%s:%d", file, line))
			}
			r.text(in, file, line, text)
		}
	}
}

// tree looks at all Go and Markdown files, except the glossary, which contains the words, and texts of licenses.
func (r rules) tree(t *testing.T) found {
	t.Helper()
	in := make(found)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		ext := filepath.Ext(path)
		switch name := d.Name(); {
		case d.IsDir() && file != "." && (name == "bin" || name == "node_modules" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir(), ext != ".go" && ext != ".md", file == filepath.Join("docs", "glossary.md"),
			strings.HasPrefix(file, filepath.Join("tools", "words")+string(filepath.Separator)):
			return nil
		}
		source, err := os.ReadFile(path)
		if ext == ".go" {
			r.source(in, file, source)
		} else {
			r.text(in, file, 1, string(source))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// readAllowed reads how often each word may still occur.
func readAllowed(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("allowed.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		var word string
		var n int
		if _, err := fmt.Sscan(line, &word, &n); err != nil {
			t.Fatalf("allowed.txt: %q: %v", line, err)
		}
		allowed[word] = n
	}
	return allowed
}

// TestNoWordIsRuledOut compares the remaining uses with allowed.txt, whose numbers can only
// become smaller.
func TestNoWordIsRuledOut(t *testing.T) {
	t.Parallel()
	r := readRules(t)
	in, allowed := r.tree(t), readAllowed(t)
	left := make(map[string]int)
	for word := range allowed {
		if !r.words[word] && !r.names[word] {
			t.Errorf("allowed.txt: %s is not ruled out", word)
		}
	}
	for word, places := range in {
		left[word] = min(len(places), allowed[word])
		if n := len(places); n > allowed[word] {
			t.Errorf("%s is there %d times, %d are allowed: docs/glossary.md says what to write instead. It is in %s",
				word, n, allowed[word], strings.Join(places[:min(n, 40)], " "))
		}
	}
	maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
	if *update {
		var b strings.Builder
		for _, word := range slices.Sorted(maps.Keys(left)) {
			fmt.Fprintf(&b, "%s %d\n", word, left[word])
		}
		if err := os.WriteFile("allowed.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !maps.Equal(left, allowed) {
		t.Error("allowed.txt allows more than is left: go test ./tools/words -update lowers its numbers")
	}
}

func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	r := rules{map[string]bool{"beat": true}, map[string]bool{"had": true}}
	in := make(found)
	r.source(in, "x.go", []byte("package x\n\n// A beat, heartbeats, beaten.\nvar lastBeat, had, hadBEAT = \"on the Beat\", 1, 2 // had\n"))
	want := found{"beat": {"x.go:3", "x.go:4", "x.go:4", "x.go:4"}, "had": {"x.go:4"}}
	if !maps.EqualFunc(in, want, slices.Equal) {
		t.Errorf("got %v, want %v", in, want)
	}
}
