package httpapi

import (
	"net/http"
	"reflect"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

func (s *Server) xdsClientsRoute() route {
	return route{
		path: "/v1/xds/clients", id: "xdsClients", summary: "Clients that follow services by xDS, and the versions that each has confirmed or rejected.",
		answer: reflect.TypeFor[api.XDSClients](), errors: []int{http.StatusNotFound}, handle: s.serveXDSClients,
	}
}

func (s *Server) serveXDSClients(w http.ResponseWriter, _ *http.Request) error {
	if s.XDSClients != nil {
		if all := s.XDSClients(); all != nil {
			writeJSON(w, *all)
			return nil
		}
	}
	return notFound("this agent does not serve xDS: give it --xds ADDRESS")
}
