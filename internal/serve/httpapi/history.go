package httpapi

import (
	"net/http"
	"reflect"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// historyRoutes are the routes of the numbers of the last hour.
func (s *Server) historyRoutes() []route {
	if s.History == nil {
		return nil
	}
	of := func(w http.ResponseWriter, r *http.Request) error {
		series, known := s.History.Of(r.PathValue("name"))
		if !known {
			return notFound("nothing is remembered of a cluster %q", r.PathValue("name"))
		}
		writeJSON(w, series)
		return nil
	}
	return []route{
		says("/v1/history", "history", "The last hour of all clusters together, in numbers.", s.History.All),
		{path: "/v1/history/{name}", id: "cluster-history", summary: "The last hour of a cluster, in numbers.", answer: reflect.TypeFor[api.Series](), errors: []int{http.StatusNotFound}, handle: of},
	}
}
