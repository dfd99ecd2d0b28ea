package transport

import (
	"net/http"
	"net/url"
	"strings"
)

// ForeignPage reports whether a request comes from a page of another origin, and returns this origin.
func ForeignPage(r *http.Request) (page string, foreign bool) {
	for _, given := range r.Header["Origin"] {
		if u, err := url.Parse(given); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return given, true
		}
	}
	return "", false
}

// Unseen returns the status and the headers of a handler's answer, without the body.
func Unseen(h http.Handler, r *http.Request) (status int, header http.Header) {
	rec := &recorder{header: make(http.Header)}
	h.ServeHTTP(rec, r)
	return rec.status, rec.header
}

// recorder records the status and the headers of an answer, and discards the body.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
