package httpapi

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// says returns a route whose answer does not depend on the request.
func says[T any](path, id, summary string, answer func() T) route {
	return route{path: path, id: id, summary: summary, answer: reflect.TypeFor[T](), handle: func(w http.ResponseWriter, _ *http.Request) error {
		writeJSON(w, answer())
		return nil
	}}
}

// handled returns an [http.Handler] as the handler of a route.
func handled(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// allRoutes returns all routes of the API.
func (s *Server) allRoutes() []route {
	all := []route{
		{unbounded: true, path: "/{$}", id: "index", summary: "The paths, as text.", media: "text/plain", handle: s.index},
		{unbounded: true, path: "/healthz", id: "healthz", summary: "Whether the process works.", answer: reflect.TypeFor[api.Liveness](), handle: s.healthz},
		{
			unbounded: true, path: "/readyz", id: "readyz", summary: "Whether the agent is ready: it has synced every configured cluster once, or the sync timeout has passed.",
			answer: reflect.TypeFor[api.Readiness](), errors: []int{http.StatusServiceUnavailable}, handle: s.readyz,
		},
		{path: "/metrics", id: "metrics", summary: "Metrics for Prometheus.", media: "text/plain", handle: s.metrics()},
		{path: "/openapi.json", id: "openapi", summary: "This description.", media: "application/openapi+json", handle: s.serveOpenAPI},
		{path: "/v1/status", id: "status", summary: "Summary of the agent and its clusters.", answer: reflect.TypeFor[api.Status](), handle: s.status},
		{
			unbounded: true, path: "/v1/watch", id: "watch", summary: "The state of some resources and all their changes, as Server-Sent Events.",
			media: "text/event-stream", parameters: watchParameters(), errors: []int{http.StatusBadRequest}, handle: s.watch,
		},
		{path: "/v1/sharing", id: "sharing", summary: "How many services each two clusters share.", parameters: []string{"cluster"}, answer: reflect.TypeFor[api.Sharing](), handle: s.sharing},
		{path: "/v1/lookup/{address}", id: "lookup", summary: "The owner of an address.", answer: reflect.TypeFor[api.Lookup](), errors: []int{http.StatusBadRequest}, handle: s.lookup},
	}
	all = append(all, s.logLevelRoutes()...)
	if s.profiles {
		all = append(all, profileRoutes()...)
	}
	all = append(all, s.backendsRoute(), s.xdsClientsRoute(), s.configKeyRoute(), codesRoute())
	all = append(all, s.discoveryRoutes()...)
	all = append(all, s.debugRoutes()...)
	all = append(all, slices.Concat(s.whyRoutes(), s.historyRoutes(), s.pageRoutes())...)
	for _, res := range s.resources {
		all = append(all, res.routes(s)...)
	}
	return all
}
