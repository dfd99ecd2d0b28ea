// Package citations tests that everything that the tree refers to exists in it: the documents and sections that
// comments cite, and the links of its Markdown files.
package citations

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// files returns the Go and Markdown files of the tree, relative to its root.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "bin" || name == "vendor" || name == "node_modules" || strings.HasPrefix(name, ".") && name != "..") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); !d.IsDir() && (ext == ".go" || ext == ".md") {
			path, err = filepath.Rel(root, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	number  = regexp.MustCompile(`^([0-9A-Z](?:[0-9A-Z.]*[0-9A-Z])?)(?:\.| |$)`)
	item    = regexp.MustCompile(`^(\d+)\. `)
	// A document, its section, or a section of the document that was named last.
	cited    = regexp.MustCompile(`([\w-][\w./-]*\.md)\b(?: §([0-9A-Z](?:[0-9A-Z.]*[0-9A-Z])?))?|§([0-9A-Z](?:[0-9A-Z.]*[0-9A-Z])?)`)
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	notOurs  = regexp.MustCompile(`^(LICENSE|COPYING|bin/.*)\.md$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// sections returns the numbers of the sections of a document. The numbered items of a
// section count as sections below it.
func sections(text string) map[string]bool {
	all := make(map[string]bool)
	current := ""
	for line := range strings.Lines(text) {
		if m := heading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			current = ""
			if n := number.FindStringSubmatch(m[1]); n != nil {
				current = n[1]
				all[current] = true
			}
		} else if m := item.FindStringSubmatch(line); m != nil && current != "" {
			all[current+"."+m[1]] = true
		}
	}
	return all
}

// anchors returns the names that the headings of a document have in links.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// citing returns the lines of a text that may cite something. A citation may continue in
// the next line of a comment.
func citing(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, "§") || strings.Contains(line, ".md") {
			b.WriteString(strings.Trim(line, "/ \t\n"))
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// find returns the document that a file cites: in its own folder, the root, docs,
// or the specification.
func find(from, name string) (string, bool) {
	for _, dir := range []string{filepath.Dir(from), ".", "docs", filepath.Join("docs", "spec")} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			return path, true
		}
	}
	return "", false
}

func TestWhatIsCitedIsThere(t *testing.T) {
	t.Parallel()
	citations := 0
	known := make(map[string]map[string]bool)
	for _, from := range files(t) {
		if strings.HasPrefix(from, filepath.Join("tools", "licenses")) || strings.HasPrefix(from, filepath.Join("tools", "citations")) {
			continue
		}
		text := citing(read(t, from))
		document := "" // the one whose sections are cited: a document of the specification cites itself
		if filepath.Dir(from) == filepath.Join("docs", "spec") {
			document = from
		}
		last := document
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			name, number := m[1], m[2]+m[3]
			if name != "" && !notOurs.MatchString(name) {
				path, there := find(from, name)
				if !there {
					t.Errorf("%s cites %s, which is not in the repository", from, name)
					continue
				}
				last = path
			}
			if number == "" {
				continue
			}
			of := last
			if name == "" && document != "" {
				of = document
			}
			citations++
			if of == "" {
				t.Errorf("%s cites §%s of no document: write NAME.md §%s", from, number, number)
				continue
			}
			if known[of] == nil {
				known[of] = sections(read(t, of))
			}
			if !known[of][number] {
				t.Errorf("%s cites §%s of %s, which has no such section", from, number, of)
			}
		}
	}
	if citations < 100 {
		t.Errorf("only %d citations found: is their form another one?", citations)
	}
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	links := 0
	for _, from := range files(t) {
		if filepath.Ext(from) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, from), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			links++
			to := filepath.Join(filepath.Dir(from), filepath.FromSlash(path))
			if path == "" {
				to = from
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s: %v", from, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s: %s: no such heading", from, m[1])
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links found", links)
	}
}
