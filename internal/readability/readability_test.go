// Package readability measures how well the README and the documents read, and
// lets no page become worse.
//
// The rules are simple. A text is a paragraph, a list item or a cell of a table;
// code is left out. A sentence ends at a full stop, an exclamation or a question
// mark, or with its text, and has at least four words. It is passive when a form of
// "to be" comes before a participle. A word is standard when words.txt or terms.txt
// has it, or the word that it is made of. phrases.txt has turns that are hard to read.
package readability

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the figures in allowed.txt to those of the pages")

var root = filepath.Join("..", "..")

// bar is what a page may have at most that is not in allowed.txt.
var bar = limits{Average: 16, Long: 32, Passive: 20}

// limits are what a page may have: words of an average and of a long sentence, percent of
// sentences that are passive, words that are not standard, phrases that are hard to read.
type limits struct{ Average, Long, Passive, Unknown, Phrases int }

// of are the limits that a page with these figures just meets.
func of(f figures) limits {
	up := func(x float64) int { return int(x + 0.9999) }
	return limits{up(f.Average), f.Long, up(f.Passive), len(f.Unknown), len(f.Phrases)}
}

// each are the limits one by one, with their names.
func (l *limits) each() map[string]*int {
	return map[string]*int{"average": &l.Average, "long": &l.Long, "passive": &l.Passive, "unknown": &l.Unknown, "phrases": &l.Phrases}
}

// pages are the README and the documents but the specification, whose text is that of the protocol.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	for _, d := range docs {
		all = append(all, filepath.Join("docs", filepath.Base(d)))
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

// readAllowed reads the pages that are above the bar, and how far.
func readAllowed(t *testing.T) map[string]limits {
	t.Helper()
	all := make(map[string]limits)
	for line := range strings.Lines(read(t, "allowed.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var page string
		var l limits
		if _, err := fmt.Sscan(line, &page, &l.Average, &l.Long, &l.Passive, &l.Unknown, &l.Phrases); err != nil {
			t.Fatalf("allowed.txt: %q: %v", line, err)
		}
		all[page] = l
	}
	return all
}

const header = "# page average long passive unknown phrases: go test ./internal/readability -update lowers the numbers\n"

func write(t *testing.T, all map[string]limits) {
	t.Helper()
	var b strings.Builder
	b.WriteString(header)
	for _, page := range slices.Sorted(maps.Keys(all)) {
		l := all[page]
		fmt.Fprintln(&b, page, l.Average, l.Long, l.Passive, l.Unknown, l.Phrases)
	}
	if err := os.WriteFile("allowed.txt", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// some are the first of many texts.
func some(all []string) string {
	if len(all) > 30 {
		all = all[:30]
	}
	return strings.Join(all, ", ")
}

// check compares a page with its limits, and returns what is to be allowed of it: nothing for one below the bar.
func check(t *testing.T, page string, f figures, allowed limits) limits {
	t.Helper()
	got, limitOf, left := of(f), allowed, bar
	for what, n := range got.each() {
		limit := max(*limitOf.each()[what], *bar.each()[what])
		if *n <= limit {
			*left.each()[what] = max(*n, *bar.each()[what])
			continue
		}
		*left.each()[what] = limit
		switch what {
		case "unknown":
			t.Errorf("%s: %d words are not standard, %d are allowed: %s. Write the field's term; if this is one, put it into terms.txt", page, *n, limit, some(f.Unknown))
		case "phrases":
			t.Errorf("%s: %d phrases are hard to read, %d are allowed: %s", page, *n, limit, some(f.Phrases))
		default:
			t.Errorf("%s: %s is %d, %d at the most: write shorter sentences, in the active voice", page, what, *n, limit)
		}
	}
	return left
}

// TestPagesReadWell compares each page with the bar, or with its line of allowed.txt, whose numbers can
// only become smaller.
func TestPagesReadWell(t *testing.T) {
	t.Parallel()
	v, phrases, allowed, left := readVocabulary(t), readPhrases(t), readAllowed(t), make(map[string]limits)
	var table strings.Builder
	fmt.Fprintf(&table, "%-32s %9s %7s %4s %8s %7s %7s\n", "page", "sentences", "average", "long", "passive", "unknown", "phrases")
	for _, page := range pages(t) {
		f := measure(read(t, filepath.Join(root, page)), v, phrases)
		fmt.Fprintf(&table, "%-32s %9d %7.1f %4d %7.0f%% %7d %7d\n", page, f.Sentences, f.Average, f.Long, f.Passive, len(f.Unknown), len(f.Phrases))
		if l := check(t, page, f, allowed[page]); l != bar {
			left[page] = l
		}
		for _, w := range slices.Concat(f.Unknown, f.Phrases) {
			if testing.Verbose() {
				t.Log(page, w)
			}
		}
	}
	t.Log("\n" + table.String())
	if *update {
		write(t, left)
	} else if !maps.Equal(left, allowed) {
		t.Error("allowed.txt allows more than is left: go test ./internal/readability -update lowers its numbers")
	}
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
