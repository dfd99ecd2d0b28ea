package api

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// ServiceBackends is where connections to a service go.
type ServiceBackends struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Port      string         `json:"port" doc:"The requested port, by name or number; empty for all ports."`
	Zone      string         `json:"zone" doc:"The zone of the client; empty when not known."`
	Node      string         `json:"node" doc:"The node of the client; empty when its backends are not preferred."`
	Affinity  string         `json:"affinity" enum:"none,local,remote"`
	Groups    []BackendGroup `json:"groups" doc:"The groups, the best first. Connections go to the first group with backends; the other groups are for failover."`
	// Unconfirmed clusters may have other backends by now.
	Unconfirmed []string `json:"unconfirmed" doc:"Clusters whose services or endpoint slices are not known as of now."`
}

// BackendGroup is backends that are equally good.
type BackendGroup struct {
	Use      string          `json:"use" enum:"full,demoted,withdrawn" doc:"How the disconnect policy uses the backends of these clusters."`
	Side     string          `json:"side" enum:"any,local,remote" doc:"Whether they are local or remote, when the affinity prefers one side."`
	Near     string          `json:"near" enum:"node,zone,anywhere" doc:"The topology distance from the client."`
	Backends []ChosenBackend `json:"backends" doc:"Backends for new connections."`
	Draining []ChosenBackend `json:"draining" doc:"Backends that terminate: they keep existing connections and get no new ones."`
}

// ChosenBackend is a backend that takes or keeps connections.
type ChosenBackend struct {
	IP       string `json:"ip"`
	Cluster  string `json:"cluster"`
	Local    bool   `json:"local" doc:"Whether it belongs to the own cluster."`
	Ports    []Port `json:"ports" doc:"The requested ports."`
	Hostname string `json:"hostname"`
	Zone     string `json:"zone"`
	Node     string `json:"node"`
}

const (
	ofPort   = "port"
	fromZone = "zone"
	fromNode = "node"
)

func (s *Server) backendsRoute() route {
	return route{
		path: "/v1/backends/{namespace}/{name}", id: "backends", summary: "The backends of a service in groups, the best first.",
		parameters: []string{ofPort, fromZone, fromNode}, answer: reflect.TypeFor[ServiceBackends](),
		errors: []int{http.StatusBadRequest, http.StatusNotFound}, handle: s.serveBackends,
	}
}

// serveBackends answers as the agent's own consumers of the view choose, or for another zone or node.
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
		writeJSON(w, ServiceBackends{
			Namespace: namespace, Name: name, Port: values.Get(ofPort), Zone: from.Zone, Node: from.Node, Affinity: g.Affinity(),
			Groups:      converted(backends.Choose(g, backends.ParsePort(values.Get(ofPort)), from).Groups, toBackendGroup),
			Unconfirmed: v.Unconfirmed(view.Families(view.Services)...),
		})
	})
}

func toBackendGroup(g backends.Group) BackendGroup {
	return BackendGroup{
		Use: g.Use.String(), Side: g.Side.String(), Near: g.Near.String(),
		Backends: converted(g.Backends, toChosenBackend), Draining: converted(g.Draining, toChosenBackend),
	}
}

func toChosenBackend(b backends.Backend) ChosenBackend {
	return ChosenBackend{IP: b.IP.String(), Cluster: b.Cluster, Local: b.Local, Ports: toPorts(b.Ports), Hostname: b.Hostname, Zone: b.Zone, Node: b.Node}
}
