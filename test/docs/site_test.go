package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var (
	// loaded matches resources that a browser loads by itself when it shows a page, with their addresses.
	loaded = regexp.MustCompile(`<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="([^"]+)"`)
	// styled matches resources that a style sheet loads.
	styled = regexp.MustCompile(`url\(["']?([^)"']+)|@import\s+["']([^"']+)`)
	link   = regexp.MustCompile(`<a\b[^>]*?href="([^"]+)"`)
	anchor = regexp.MustCompile(`\bid="([^"]+)"`)
	// unlisted matches a list or a table that the generator treats as text: it needs an empty line before it.
	unlisted = regexp.MustCompile(`<p>[^<]*(?:<[^/p][^<]*|</[^p][^<]*)*?\n(?:- |\d+\. |\| )[^\n]*`)
	outside  = regexp.MustCompile(`^(?:[a-z]+:)?//`)
)

// buildSite builds the site, and returns its files by their paths.
func buildSite(t *testing.T) map[string]string {
	t.Helper()
	programtest.Find(t, "docs", "mkdocs")
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mkdocs", "build", "-f", "../../website/mkdocs.yml", "-d", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := make(map[string]string)
	waittest.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

// target is the file of the site that a link of a page leads to, and the anchor in it.
func target(page, href string) (file, id string) {
	path, id, _ := strings.Cut(href, "#")
	path, _, _ = strings.Cut(path, "?")
	if path == "" {
		return page, id
	}
	if strings.HasPrefix(path, "/") { // of the page for "not found"
		return strings.TrimPrefix(path, "/"), id
	}
	return filepath.ToSlash(filepath.Join(filepath.Dir(page), path)), id
}

// hasAnchor reports whether a page has the anchor of a link.
func hasAnchor(page, id string) bool {
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		if m[1] == id {
			return true
		}
	}
	return id == ""
}

// TestSite: the site is built without a warning, its links have targets, it has a search, and it loads nothing from
// another server.
func TestSite(t *testing.T) {
	t.Parallel()
	files := buildSite(t)
	links := 0
	for page, text := range files {
		switch filepath.Ext(page) {
		case ".css":
			for _, m := range styled.FindAllStringSubmatch(text, -1) {
				if outside.MatchString(m[1] + m[2]) {
					t.Errorf("%s gets %s", page, m[1]+m[2])
				}
			}
		case ".html":
			if m := unlisted.FindString(text); m != "" {
				t.Errorf("%s has a list or a table as text: put an empty line before it: %s", page, m)
			}
			for _, m := range loaded.FindAllStringSubmatch(text, -1) {
				if file, _ := target(page, m[1]); outside.MatchString(m[1]) || files[file] == "" {
					t.Errorf("%s gets %s: from another server, or it is not there", page, m[1])
				}
			}
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				if strings.Contains(m[1], ":") || page == "404.html" {
					continue
				}
				links++
				file, id := target(page, m[1])
				if to, there := files[file]; !there || !hasAnchor(to, id) {
					t.Errorf("%s: %s leads nowhere", page, m[1])
				}
			}
		}
	}
	if links < 1000 {
		t.Errorf("only %d links", links)
	}
	if index := files["search/search_index.json"]; !strings.Contains(index, "clusterset.local") {
		t.Error("the search has no index of the pages")
	}
}

// TestIndex: docs/README.md, and with it the navigation of the site, has every page.
func TestIndex(t *testing.T) {
	t.Parallel()
	index := strings.Join(readPage(t, "../../docs/README.md"), "\n")
	pages, err := filepath.Glob("../../docs/*.md")
	waittest.Must(t, err)
	specs, err := filepath.Glob("../../docs/spec/*.md")
	waittest.Must(t, err)
	for _, page := range append(pages, append(specs, "../../docs/decisions/README.md")...) {
		name, err := filepath.Rel("../../docs", page)
		waittest.Must(t, err)
		if name != "README.md" && !strings.Contains(index, "("+filepath.ToSlash(name)+")") {
			t.Errorf("docs/README.md does not list %s: is it a tutorial, a how-to guide, reference or explanation?", name)
		}
	}
}
