package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func newPage(t *testing.T) *Page {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(t *testing.T, p *Page, name, encoding string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/ui/"+name, nil)
	r.Header.Set("Accept-Encoding", encoding)
	if !p.Serve(w, r, name) {
		t.Fatalf("there is no file %q", name)
	}
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage: all files that the index names exist, and their names are relative. Browsers may keep these files for ever,
// and have to revalidate the index.
func TestPage(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	index := get(t, p, "", "")
	if got := index.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the index is kept: %q", got)
	}
	names := regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(body(t, index.Body), -1)
	if len(names) != 3 {
		t.Fatalf("the index has %v", names)
	}
	for _, name := range names {
		f := get(t, p, name[1], "")
		if !regexp.MustCompile(`^assets/[a-z]+-[A-Z0-9]{8}\.(js|css|svg)$`).MatchString(name[1]) || !strings.HasSuffix(f.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", name[1], f.Header)
		}
		if f.Header.Get("Content-Type") == "" || f.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", name[1], f.Header)
		}
	}
}

// TestPolicy: only the agent's own files may run, and text cannot become markup.
func TestPolicy(t *testing.T) {
	t.Parallel()
	got := get(t, newPage(t), "", "").Header.Get("Content-Security-Policy")
	for _, directive := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'",
		"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types worker", "worker-src 'self'",
	} {
		if !strings.Contains("; "+got+";", "; "+directive+";") {
			t.Errorf("%q lacks %s", got, directive)
		}
	}
	if strings.Contains(got, "unsafe") || strings.Contains(got, "http") {
		t.Errorf("%q allows more", got)
	}
}

// TestCompressed: the compressed answer has the contents of the file, and the sum of all compressed files has a limit.
func TestCompressed(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	sent := 0 // to a browser that opens the page for the first time
	for name, f := range p.files {
		sent += len(f.zipped)
		zipped := get(t, p, name, "br, gzip;q=0.5")
		z, err := gzip.NewReader(zipped.Body)
		if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", name, err, zipped.Header)
		}
		if body(t, z) != body(t, get(t, p, name, "").Body) {
			t.Errorf("%s: what is compressed is something else", name)
		}
	}
	const most = 150_000
	if t.Logf("the page has %d bytes compressed", sent); sent > most {
		t.Errorf("they are more than %d", most)
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip; q=0.1": true, "gzip;q=x": false, "br": false, "xgzip": false,
	} {
		if got := acceptsGzip(header); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestUnknownFile(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if newPage(t).Serve(w, httptest.NewRequest(http.MethodGet, "/ui/nope", nil), "../ui.go") || len(w.Header()) > 0 {
		t.Errorf("answered %v", w.Header())
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if !newPage(t).Serve(w, httptest.NewRequest(http.MethodHead, "/ui/", nil), "") || w.Body.Len() > 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("%v %q", w.Header(), w.Body)
	}
}

func TestWithoutIndex(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]fstest.MapFS{
		"without an index":   {"assets/a.js.gz": {Data: zipped.Bytes()}},
		"not compressed":     {"index.html": {Data: []byte("x")}},
		"compressed by name": {"index.html.gz": {Data: []byte("x")}},
	} {
		if _, err := read(wrong); err == nil {
			t.Errorf("a page %s is none", name)
		}
	}
	if _, err := read(fstest.MapFS{"index.html.gz": {Data: zipped.Bytes()}}); err != nil {
		t.Error(err)
	}
}
