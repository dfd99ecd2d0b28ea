package transport

import (
	"errors"
	"net/http"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/guard"
)

// Apart calls a handler within a boundary: the error is [boundary.ErrInternal] when the handler panics. A panic with
// [http.ErrAbortHandler] is passed on.
func Apart(b *boundary.Boundary, h http.HandlerFunc, w http.ResponseWriter, r *http.Request) error {
	err := guard.Run(func() error { h(w, r); return nil })
	if p, panicked := errors.AsType[*guard.Panic](err); panicked && p.Value == http.ErrAbortHandler {
		panic(http.ErrAbortHandler)
	}
	return b.Caught(err, "path", r.URL.Path)
}
