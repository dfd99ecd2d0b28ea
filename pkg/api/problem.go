package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/mesh-agent/mesh-agent/internal/safetext"
)

// problemf returns a problem document with the status' own title.
func problemf(status int, format string, args ...any) *Problem {
	return &Problem{
		Type:   "about:blank",
		Title:  http.StatusText(status),
		Status: status,
		Detail: fmt.Sprintf(format, args...),
	}
}

func badRequest(format string, args ...any) *Problem {
	return problemf(http.StatusBadRequest, format, args...)
}

func notFound(format string, args ...any) *Problem {
	return problemf(http.StatusNotFound, format, args...)
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeBody(w, MediaTypeProblem, p.Status, p)
}

func writeJSON(w http.ResponseWriter, v any) {
	writeBody(w, "application/json", http.StatusOK, v)
}

func writeBody(w http.ResponseWriter, kind string, status int, v any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// The types are ours and can be encoded: what fails is the connection, and
	// there is nobody left to tell.
	_ = newEncoder(w).Encode(v)
}

func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(safetext.Writer(w))
	e.SetEscapeHTML(false)
	return e
}
