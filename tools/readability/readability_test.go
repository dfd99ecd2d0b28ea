// Package readability measures how well the README, the documents, the help of the commands and the log read, and
// fails for a page below the bar.
//
// The rules are simple. A text is a paragraph, a list item or a cell of a table;
// code is left out. A sentence ends at a full stop, an exclamation or a question
// mark, or with its text, and has at least four words. It is passive when a form of
// "to be" comes before a participle. A word is standard when words.txt or terms.txt
// has it, or the word that it is made of. phrases.txt has turns that are hard to read.
package readability

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// The limits of a page: words of a sentence on average, words that 95 of 100 sentences do not exceed, and passive
// sentences, in percent. A page has no word that is not standard, and no phrase that is hard to read.
const (
	maxAverage = 16
	maxLong    = 32
	maxPassive = 20
)

// pages are the README and the documents except the specification, whose text is that of the protocol.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	if err != nil || len(decisions) == 0 {
		t.Fatal("no decisions", err)
	}
	for _, d := range append(docs, decisions...) {
		name, err := filepath.Rel(root, d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, filepath.ToSlash(name))
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readVocabulary reads the standard words, and the terms and names of this project. A "#" begins a comment.
func readVocabulary(t *testing.T) vocabulary {
	t.Helper()
	v := make(vocabulary)
	for _, file := range []string{"words.txt", "terms.txt"} {
		for line := range strings.Lines(read(t, file)) {
			text, _, _ := strings.Cut(line, "#")
			for _, w := range strings.Fields(text) {
				v[strings.ToLower(w)] = true
			}
		}
	}
	return v
}

// readPhrases reads lines of a regular expression, "->" and what to write instead.
func readPhrases(t *testing.T) []phrase {
	t.Helper()
	var all []phrase
	for line := range strings.Lines(read(t, "phrases.txt")) {
		pattern, instead, found := strings.Cut(strings.TrimSpace(line), " -> ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !found {
			t.Fatalf("phrases.txt: %q has no \" -> \"", line)
		}
		all = append(all, phrase{regexp.MustCompile(pattern), instead})
	}
	return all
}

// some returns the first ones of many texts.
func some(all []string) string {
	if len(all) > 30 {
		all = all[:30]
	}
	return strings.Join(all, ", ")
}

// check compares a page with the bar.
func check(t *testing.T, page string, f figures) {
	t.Helper()
	if f.Average > maxAverage || f.Long > maxLong || f.Passive > maxPassive {
		t.Errorf("%s: sentences have %.1f words (%d at the most), 5 of 100 have %d or more (%d), and %.0f %% are passive (%d): write shorter sentences, in the active voice",
			page, f.Average, maxAverage, f.Long, maxLong, f.Passive, maxPassive)
	}
	if len(f.Unknown) > 0 {
		t.Errorf("%s: %d words are not standard: %s. Write the field's term; if this is one, put it into terms.txt", page, len(f.Unknown), some(f.Unknown))
	}
	if len(f.Phrases) > 0 {
		t.Errorf("%s: %d phrases are hard to read: %s", page, len(f.Phrases), some(f.Phrases))
	}
}

// TestPagesReadWell compares each page with the bar.
func TestPagesReadWell(t *testing.T) {
	t.Parallel()
	v, phrases := readVocabulary(t), readPhrases(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-32s %9s %7s %4s %8s\n", "page", "sentences", "average", "long", "passive")
	for _, page := range pages(t) {
		text := read(t, filepath.Join(root, page))
		if lines := readPage(text).unlisted; len(lines) > 0 {
			t.Errorf("%s: the site shows these lists or tables as text: put an empty line before them, and indent by multiples of four spaces: %q", page, lines)
		}
		f := measure(text, v, phrases)
		fmt.Fprintf(&table, "%-32s %9d %7.1f %4d %7.0f%%\n", page, f.Sentences, f.Average, f.Long, f.Passive)
		check(t, page, f)
	}
	t.Log("\n" + table.String())
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	page := "# Title\n\nThe agent reads `etcd`. It was written by people, e.g. by us; it is ready\nfor use. Yes.\n\n" +
		"    $ code is not measured at all\n\n- An item of a list.\n\n      code in it\n- Whoever gobbles this.\n\n| one cell | it is not closed again |\n|---|---|\n"
	v := vocabulary(setOf("title the agent read it was written by people us is ready for use yes an item of list this one cell not close again"))
	f := measure(page, v, []phrase{{regexp.MustCompile(`\bWhoever\b`), "who"}})
	// The sentences have 4, 13, 5 and 5 words.
	want := figures{Sentences: 4, Average: 6.75, Long: 13, Passive: 50, Unknown: []string{"gobbles", "whoever"}, Phrases: []string{"Whoever -> who"}}
	slices.Sort(f.Unknown)
	if fmt.Sprint(f) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestListsAndTablesOfThePages(t *testing.T) {
	t.Parallel()
	page := "- a list\n- of two\n    - in it\n   - as text\n\nText.\n- no list\n\nText.\n| no table |\n\n    - code\n\n1. a\n\n    more\n2. b\n"
	if got, want := readPage(page).unlisted, []string{"   - as text", "- no list", "| no table |", "2. b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPassive(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]bool{
		"The key is deleted.":           true,
		"It is not always kept.":        true,
		"They are automatically added.": true,
		"The agent deletes the key.":    false,
		"It is ready when it started.":  false,
		"A client is interested in it.": false,
	} {
		if passive(sentence) != want {
			t.Errorf("%q: passive is %v", sentence, !want)
		}
	}
}
