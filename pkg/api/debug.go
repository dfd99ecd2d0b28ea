package api

import (
	"net/http"
	"reflect"
	"runtime/pprof"
)

// debugRoutes are about the process itself.
func (s *Server) debugRoutes() []route {
	return []route{
		{
			local: true, path: "/v1/debug/goroutines", id: "debug-goroutines", summary: "The stacks of all goroutines, as text.",
			media: "text/plain", handle: func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_ = pprof.Lookup("goroutine").WriteTo(w, allStacks) // the client is gone
				return nil
			},
		},
		{
			local: true, path: "/v1/debug/config", id: "debug-config", summary: "The settings in force, secrets left out.",
			answer: reflect.TypeFor[Settings](), handle: func(w http.ResponseWriter, _ *http.Request) error {
				writeJSON(w, s.Settings)
				return nil
			},
		},
	}
}

// allStacks is the form of pprof that shows each goroutine with its stack, as a
// panic does.
const allStacks = 2
