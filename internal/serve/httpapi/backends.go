package httpapi

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

const (
	ofPort   = "port"
	fromZone = "zone"
	fromNode = "node"
)

func (s *Server) backendsRoute() route {
	return route{
		path: "/v1/backends/{namespace}/{name}", id: "backends", summary: "The backends of a service in groups, the best first.",
		parameters: []string{ofPort, fromZone, fromNode}, answer: reflect.TypeFor[api.ServiceBackends](),
		errors: []int{http.StatusBadRequest, http.StatusNotFound}, handle: s.serveBackends,
	}
}

// serveBackends answers with the choice of backends of this agent, or of another zone or node.
func (s *Server) serveBackends(w http.ResponseWriter, r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("query: %v", err)
	}
	for name, given := range values {
		if !slices.Contains([]string{ofPort, fromZone, fromNode}, name) || len(given) > 1 {
			return badRequest("%s: the parameters are port, zone and node, each once", name)
		}
	}
	if err := backends.CheckPort(values.Get(ofPort)); err != nil {
		return badRequest("%s: %v", ofPort, err)
	}
	from := s.Asker
	if values.Has(fromZone) || values.Has(fromNode) {
		from = backends.Asker{Zone: values.Get(fromZone), Node: values.Get(fromNode)}
	}
	v := s.View.DatedSnapshot(r.Context())
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	g := s.View.Services.Find(v.Txn, namespace, name, nil)
	if g == nil {
		return withDoubt(notFound("no cluster is known to have a service %s/%s", namespace, name), v, view.Families(view.Services))
	}
	return s.large.Write(w, r, g, func() {
		writeJSON(w, api.ServiceBackends{
			Namespace: namespace, Name: name, Port: values.Get(ofPort), Zone: from.Zone, Node: from.Node, Affinity: g.Affinity(),
			Groups:      converted(backends.Choose(g, backends.ParsePort(values.Get(ofPort)), from).Groups, toBackendGroup),
			Unconfirmed: v.Unconfirmed(view.Families(view.Services)...),
		})
	})
}

func toBackendGroup(g backends.Group) api.BackendGroup {
	return api.BackendGroup{
		Use: g.Use.String(), Side: g.Side.String(), Near: g.Near.String(),
		Backends: converted(g.Backends, toChosenBackend), Draining: converted(g.Draining, toChosenBackend),
	}
}

func toChosenBackend(b backends.Backend) api.ChosenBackend {
	return api.ChosenBackend{IP: b.IP.String(), Cluster: b.Cluster, Local: b.Local, Ports: toPorts(b.Ports), Hostname: b.Hostname, Zone: b.Zone, Node: b.Node}
}
