package httpapi

import (
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/serve/discovery"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// discoveryRoutes are for Prometheus. It replaces all its targets with each answer, and keeps the last ones after an
// error: so the answer is an error while [view.View.MayDeny] is false.
func (s *Server) discoveryRoutes() []route {
	return []route{
		discoveryRoute(s, nodeResource(), "nodes", "The nodes of all clusters, as targets for Prometheus.", true, func(all iter.Seq[*nodes.Node], known discovery.Known, q *discoveryQuery) iter.Seq[discovery.Group] {
			return discovery.Nodes(all, q.port, known)
		}),
		discoveryRoute(s, serviceResource(), "services", "The services of all clusters by their names in DNS, as targets for Prometheus.", false, func(all iter.Seq[*services.Global], known discovery.Known, _ *discoveryQuery) iter.Seq[discovery.Group] {
			return discovery.Services(all, known)
		}),
		discoveryRoute(s, serviceResource(), "endpoints", "The backends of all services, as targets for Prometheus.", false, func(all iter.Seq[*services.Global], known discovery.Known, q *discoveryQuery) iter.Seq[discovery.Group] {
			return filtered(discovery.Endpoints(all, known), func(g discovery.Group) bool { return passes(q.cluster, g.Labels[discovery.LabelCluster]) })
		}),
	}
}

// discovered counts the requests of Prometheus for lists of targets.
type discovered struct{ *prometheus.CounterVec }

// The outcomes of a request, as labels.
const (
	targetsGiven   = "given"
	targetsUnknown = "not ready" // Prometheus keeps the targets of the last answer
)

func newDiscovered() discovered {
	d := discovered{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_discovery_answers_total",
		Help: "Requests for lists of targets, by list and result: answered, or refused because not all clusters were known yet.",
	}, []string{"list", "outcome"})}
	for _, list := range []string{"nodes", "services", "endpoints"} {
		d.WithLabelValues(list, targetsGiven)
		d.WithLabelValues(list, targetsUnknown)
	}
	return d
}

// discoveryQuery is the query of a list, without pages: Prometheus needs whole lists.
type discoveryQuery struct {
	query
	port uint16 // of nodes
}

// parseDiscovery parses a query. Nodes have no ports of their own: the query must give the port to scrape.
func parseDiscovery(resource string, filters []string, withPort bool, raw string) (q discoveryQuery, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, badRequest("query: %v", err)
	}
	for _, page := range []string{"limit", "cursor"} {
		if values.Has(page) {
			return q, badRequest("%s: targets are given all at once", page)
		}
	}
	if withPort {
		text := values.Get(ofPort)
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 || len(values[ofPort]) > 1 {
			return q, badRequest("port %q: say once which port of the nodes is asked, such as port=9100", text)
		}
		q.port = uint16(port)
		values.Del(ofPort)
	}
	q.query, err = parseQuery(resource, filters, values.Encode())
	return q, err
}

// discoveryRoute returns the route that lists the objects of a resource as targets.
func discoveryRoute[D, J any](s *Server, res *resource[D, J], name, summary string, withPort bool,
	targets func(all iter.Seq[D], known discovery.Known, q *discoveryQuery) iter.Seq[discovery.Group],
) route {
	parameters := res.filters
	if withPort {
		parameters = append(slices.Clone(parameters), ofPort)
	}
	return route{
		path: "/v1/discovery/prometheus/" + name, id: "discovery-" + name, summary: summary, parameters: parameters,
		answer: reflect.TypeFor[[]discovery.Group](), errors: []int{http.StatusBadRequest, http.StatusServiceUnavailable},
		handle: func(w http.ResponseWriter, r *http.Request) error {
			q, err := parseDiscovery(string(res.name), res.filters, withPort, r.URL.RawQuery)
			if err != nil {
				return err
			}
			if allowed, reasons := s.View.MayDeny(); !allowed {
				s.discovered.WithLabelValues(name, targetsUnknown).Inc()
				return problemf(http.StatusServiceUnavailable, "not every cluster is known yet: %s", view.OneLine(reasons))
			}
			v := s.View.DatedSnapshot(r.Context(), res.name)
			items, err := res.from(s, v, &q.query)
			if err != nil {
				return err
			}
			s.discovered.WithLabelValues(name, targetsGiven).Inc()
			stale := v.Unconfirmed(view.Families(res.name)...)
			known := discovery.Known{
				Stale: func(cluster string) bool { return slices.Contains(stale, cluster) }, Zone: s.Zone, Asker: s.Asker, Pod: s.View.Pod,
				Name: func(g *services.Global) string { return s.View.Services.ClientName(v.Txn, g) },
			}
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodHead {
				return nil
			}
			chosen := filtered(items, func(d D) bool { return res.chosen(s, v, &q.query, d) })
			transport.WriteArray(r.Context(), w, targets(chosen, known, &q))
			return nil
		},
	}
}

func filtered[T any](all iter.Seq[T], passes func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for one := range all {
			if passes(one) && !yield(one) {
				return
			}
		}
	}
}
