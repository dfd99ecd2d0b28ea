package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// problemf returns a problem document with the title of the status.
func problemf(status int, format string, args ...any) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *api.Problem {
	return problemf(http.StatusBadRequest, format, args...)
}

func notFound(format string, args ...any) *api.Problem {
	return problemf(http.StatusNotFound, format, args...)
}

func writeProblem(w http.ResponseWriter, p *api.Problem) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeBody(w, api.MediaTypeProblem, p.Status, p)
}

func writeJSON(w http.ResponseWriter, v any) {
	writeBody(w, "application/json", http.StatusOK, v)
}

func writeBody(w http.ResponseWriter, kind string, status int, v any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// The types are ours and can always be encoded: an error is one of the connection, so no answer can be sent.
	_ = safetext.Encoder(w).Encode(v)
}

// withDoubt adds to the error that an object does not exist the clusters that may still have it.
func withDoubt(err error, v *view.Snapshot, of []wire.Resource) error {
	p, is := errors.AsType[*api.Problem](err)
	if !is || p.Status != http.StatusNotFound {
		return err
	}
	if names := v.Unconfirmed(of...); len(names) > 0 {
		p.Detail += fmt.Sprintf("; what these clusters have is not known as of now: %s", strings.Join(names, ", "))
	}
	return p
}
