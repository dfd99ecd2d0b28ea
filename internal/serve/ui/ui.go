// Package ui has the page that shows in a browser what an agent knows, and its handler. The page is
// built from the sources in the directory ui of the project (docs/ui.md), and its files are part of
// the program: it asks nobody but the agent that it came from, by the paths of package api.
//
// Its index is asked for again each time; everything else has a hash of its content in its name, and
// is kept. The content security policy lets nothing run, and nothing be asked, that is not the
// agent's own: names that other clusters choose are text, whatever they look like.
//
// Concurrency: a [Page] does not change and may be used by any number of goroutines.
package ui

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed dist
var built embed.FS

const index = "index.html"

// policy lets the page have scripts, styles and answers of the agent alone, and be in no frame of
// others. Text cannot become markup or a script: trusted types make that an error. Their one policy names the worker that
// the windows of a browser share.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types worker"

// Page is the files of the page, as they are sent.
type Page struct{ files map[string]file }

type file struct {
	kind          string // its media type
	plain, zipped []byte
}

// New reads the files of the program.
func New() (*Page, error) {
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	return read(dist)
}

// read reads the files of a page, which are compressed as most browsers get them: the program is smaller by that.
func read(dist fs.FS) (*Page, error) {
	p := &Page{files: make(map[string]file)}
	err := fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, zipped := strings.CutSuffix(name, ".gz")
		if !zipped {
			return fmt.Errorf("%s is not compressed", name)
		}
		f := file{kind: kindOf(name)}
		if f.zipped, err = fs.ReadFile(dist, name+".gz"); err != nil {
			return err
		}
		if f.plain, err = unzip(f.zipped); err == nil {
			p.files[name] = f
		}
		return err
	})
	if err == nil && p.files[index].plain == nil {
		err = fmt.Errorf("there is no %s", index)
	}
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	return p, nil
}

// kindOf does not depend on what the machine says of endings.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func unzip(zipped []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Serve answers with the file of a name, the index for none. It answers false, and writes nothing,
// when there is no such file.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	if name == "" {
		name = index
	}
	f, found := p.files[name]
	if !found {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if name != index {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Add("Vary", "Accept-Encoding")
	body := f.plain
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone
	}
	return true
}

// acceptsGzip reads the header (RFC 9110, section 12.5.3), as far as it is about gzip by its name.
func acceptsGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		n, err := strconv.ParseFloat(q, 64)
		return !given || err == nil && n > 0
	}
	return false
}
