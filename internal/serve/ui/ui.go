// Package ui has the web page that shows the state of an agent, and its handler. The page is built from the sources in
// the directory ui of the project (docs/ui.md), and its files are part of the program. The page sends requests only to
// the agent that served it, to the paths of package api.
//
// Browsers ask for the index each time. All other files have a hash of their content in their names, and are cached.
// The content security policy allows only scripts and requests of the agent itself: names that other clusters choose
// are always text.
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

// policy allows only scripts, styles and requests of the agent itself, and forbids showing the page in a frame. Text
// cannot become markup or a script: with trusted types that is an error. The one allowed trusted-types policy is for
// the worker that the windows of a browser share.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types worker"

// Page has the files of the page in the form in which they are sent.
type Page struct{ files map[string]file }

type file struct {
	kind          string // its media type
	plain, zipped []byte
}

// New reads the files that are part of the program.
func New() (*Page, error) {
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	return read(dist)
}

// read reads the files of a page. They are compressed, as most browsers get them compressed, and the program is
// smaller.
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

// kindOf returns the media type of a file. The common types do not depend on the settings of the machine.
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

// Serve sends the file with this name, or the index for the empty name. If there is no such file, it writes nothing
// and returns false.
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
		_, _ = w.Write(body) // on an error, the client has closed the connection
	}
	return true
}

// acceptsGzip reports whether the header Accept-Encoding allows gzip, by its name (RFC 9110, section 12.5.3). It
// ignores "*".
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
