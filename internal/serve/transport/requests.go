package transport

import (
	"net/http"
	"net/url"
	"strings"
)

// ForeignPage reports whether a page of another origin asks, and which.
func ForeignPage(r *http.Request) (page string, foreign bool) {
	for _, given := range r.Header["Origin"] {
		if u, err := url.Parse(given); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return given, true
		}
	}
	return "", false
}

// Unseen is what a handler would answer, without its body.
func Unseen(h http.Handler, r *http.Request) (status int, header http.Header) {
	rec := &recorder{header: make(http.Header)}
	h.ServeHTTP(rec, r)
	return rec.status, rec.header
}

// recorder takes an answer that nobody will see.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
