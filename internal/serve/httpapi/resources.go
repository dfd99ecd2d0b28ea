package httpapi

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type described interface {
	watchable
	routes(s *Server) []route
}

// allResources returns all resources that can be listed and watched.
func allResources() []described {
	return []described{
		clusterResource(), nodeResource(), serviceResource(), exportResource(), identityResource(), ipResource(),
		conflictResource(), eventResource(), healthResource(),
	}
}

func clusterResource() *resource[remotecluster.Status, api.Cluster] {
	return inSnapshot(&resource[remotecluster.Status, api.Cluster]{
		name: view.Clusters, summary: "The remote clusters.", filters: []string{byCluster, byName},
		fixed: func(q *query, c remotecluster.Status) bool {
			return passes(q.cluster, c.Name) && passes(q.name, c.Name)
		},
		convert: func(s *Server, _ *view.Snapshot, c remotecluster.Status) api.Cluster { return s.cluster(c, s.now()) },
		// Like the view: it also removes the time up to which a copy is confirmed, while the copy is synced.
		steady: func(c *api.Cluster) {
			c.LastEvent, c.HeartbeatAgeSeconds, c.Policy = nil, nil, steady(c.Policy)
			c.Freshness.Worst = api.Freshness{State: c.Freshness.Worst.State}
			for _, f := range c.Freshness.All() {
				*f = api.Freshness{State: f.State, AsOf: f.AsOf, Message: f.Message}
				if f.State == string(remotecluster.FreshnessSynced) {
					f.AsOf = nil
				}
			}
		},
		paths: []string{"/{name}"}, missing: "there is no cluster %[1]q",
	}, (*view.Snapshot).Clusters, func(c remotecluster.Status) string { return c.Name })
}

func nodeResource() *resource[*nodes.Node, api.Node] {
	return inTable(&resource[*nodes.Node, api.Node]{
		name: view.Nodes, summary: "The nodes of the clusters.", filters: []string{byCluster, byName, byContains, byPrefix, byLabels},
		fixed: func(q *query, n *nodes.Node) bool {
			return passes(q.cluster, n.Cluster) && passes(q.name, n.Name) && q.mentions(n.Cluster+"/"+n.Name)
		},
		// One address of the node must be within the prefix, or one of its pod networks.
		match: func(_ *Server, _ *view.Snapshot, q *query, n *nodes.Node) bool {
			return q.labels.Matches(maps.All(n.Labels)) && (!q.prefix.IsValid() ||
				slices.ContainsFunc(n.Addresses, func(a nodes.Address) bool { return q.prefix.Contains(a.IP) }) ||
				slices.ContainsFunc(n.PodCIDRs, func(c netip.Prefix) bool { return within(q.prefix, c) }))
		},
		convert: func(_ *Server, _ *view.Snapshot, n *nodes.Node) api.Node { return toNode(n) },
		paths:   []string{"/{cluster}/{name}"}, missing: "there is no node %[2]q in cluster %[1]q",
	}, func(v *view.View) statedb.Table[*nodes.Node] { return v.Nodes.Table() },
		func(key string) (statedb.Query[*nodes.Node], error) { return nodes.ByKey(key), nil })
}

func serviceResource() *resource[*services.Global, api.Service] {
	return inTable(&resource[*services.Global, api.Service]{
		name: view.Services, summary: "The services that clusters share, and the own cluster's.",
		filters: []string{byCluster, byNamespace, byName, byContains, byLabels},
		fixed: func(q *query, g *services.Global) bool {
			return passes(q.namespace, g.Namespace) && passes(q.name, g.Name) && q.mentions(g.Namespace+"/"+g.Name)
		},
		// The part of one cluster must pass all filters.
		match: func(_ *Server, _ *view.Snapshot, q *query, g *services.Global) bool {
			return slices.ContainsFunc(g.Parts, func(p *services.Service) bool {
				return passes(q.cluster, p.Cluster) && q.labels.Matches(maps.All(p.Labels))
			})
		},
		convert: toService,
		alone:   doubtService,
		paths:   []string{"/{namespace}/{name}"}, missing: "no cluster shares a service %[2]q in namespace %[1]q",
	}, func(v *view.View) statedb.Table[*services.Global] { return v.Services.Global() },
		func(key string) (q statedb.Query[*services.Global], err error) {
			namespace, name, ok := strings.Cut(key, "/")
			if !ok {
				return q, errCursor()
			}
			return services.GlobalByName(namespace, name), nil
		})
}

func exportResource() *resource[*services.Export, api.ServiceExport] {
	return inTable(&resource[*services.Export, api.ServiceExport]{
		name: view.ServiceExports, summary: "The services that clusters export through the MCS API.",
		filters: []string{byCluster, byNamespace, byName},
		fixed: func(q *query, e *services.Export) bool {
			return passes(q.cluster, e.Cluster) && passes(q.namespace, e.Namespace) && passes(q.name, e.Name)
		},
		convert: func(_ *Server, _ *view.Snapshot, e *services.Export) api.ServiceExport {
			return api.ServiceExport{
				Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name, Type: e.Type,
				SessionAffinity: e.Affinity, SessionAffinityTimeoutSeconds: int(e.Timeout / time.Second),
				Ports: toPorts(e.Ports), Created: e.Created,
			}
		},
		paths:   []string{"/{cluster}/{namespace}/{name}"},
		missing: "cluster %[1]q exports no service %[3]q in namespace %[2]q through the MCS API",
	}, func(v *view.View) statedb.Table[*services.Export] { return v.Services.ServiceExports() },
		func(key string) (q statedb.Query[*services.Export], err error) {
			parts := strings.SplitN(key, "/", 3)
			if len(parts) != 3 {
				return q, errCursor()
			}
			return services.ExportByKey(parts[0], parts[1], parts[2]), nil
		})
}

func identityResource() *resource[*identities.Identity, api.Identity] {
	res := inTable(&resource[*identities.Identity, api.Identity]{
		name: view.Identities, summary: "The identities of the clusters.",
		filters: []string{byCluster, byNamespace, byIdentity, byLabels},
		fixed: func(q *query, i *identities.Identity) bool {
			return passes(q.cluster, i.Cluster) && (q.identity == nil || *q.identity == i.ID)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, i *identities.Identity) bool {
			return (q.namespace == "" || hasNamespace(i, q.namespace)) && q.labels.Matches(labelsOf(i))
		},
		convert: func(_ *Server, _ *view.Snapshot, i *identities.Identity) api.Identity { return toIdentity(i) },
		paths:   []string{"/{id}"},
	}, func(v *view.View) statedb.Table[*identities.Identity] { return v.Identities.Table() },
		func(key string) (q statedb.Query[*identities.Identity], err error) {
			number, cluster, ok := strings.Cut(key, "/")
			id, err := strconv.ParseUint(number, 10, 32)
			if err != nil || !ok {
				return q, errCursor()
			}
			return identities.ByKey(uint32(id), cluster), nil
		})
	// The number alone is not a key: several clusters may have it.
	res.one = func(s *Server, v *view.Snapshot, path func(string) string) (*identities.Identity, error) {
		id, err := parseIdentity(path("id"))
		if err != nil {
			return nil, err
		}
		for i := range identities.ByID(v.Txn, s.View.Identities.Table(), *id) {
			return i, nil
		}
		return nil, notFound("there is no identity %d", *id)
	}
	return res
}

// labelsOf iterates over the labels as the API shows them, with their sources.
func labelsOf(i *identities.Identity) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for l := range i.Labels.All() {
			if !yield(l.Source+":"+l.Key, l.Value) {
				return
			}
		}
	}
}

func hasNamespace(i *identities.Identity, namespace string) bool {
	for l := range i.Labels.All() {
		if l.Key == wire.LabelNamespace && l.Value == namespace {
			return true
		}
	}
	return false
}

func conflictResource() *resource[*findings.Conflict, api.Conflict] {
	return inTable(&resource[*findings.Conflict, api.Conflict]{
		name: view.Conflicts, summary: "Conflicts between clusters.", filters: []string{byCluster, byKind, byName},
		fixed: func(q *query, c *findings.Conflict) bool {
			return passes(q.kind, string(c.Kind)) && passes(q.name, c.Subject)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, c *findings.Conflict) bool {
			return q.cluster == "" || c.Involves(q.cluster)
		},
		convert: func(_ *Server, _ *view.Snapshot, c *findings.Conflict) api.Conflict {
			return api.Conflict{
				Kind: string(c.Kind), Code: string(c.Code), Subject: c.Subject, Clusters: append([]string{}, c.Clusters...),
				Message: c.Message, Rule: c.Rule, Unlisted: c.More, Since: c.Since.UTC(),
			}
		},
		paths: []string{"/{kind}/{subject...}"}, missing: "there is no conflict %[3]q",
	}, func(v *view.View) statedb.Table[*findings.Conflict] { return v.Findings.Conflicts() },
		func(key string) (statedb.Query[*findings.Conflict], error) { return findings.ConflictByKey(key), nil })
}

func eventResource() *resource[*findings.Event, api.Event] {
	return inTable(&resource[*findings.Event, api.Event]{
		name: view.Events, summary: "Recent events, the oldest first.", filters: []string{byCluster, byKind, byName},
		fixed: func(q *query, e *findings.Event) bool {
			return passes(q.kind, e.Kind) && passes(q.name, e.Name) && (q.cluster == "" || e.Involves(q.cluster))
		},
		convert: func(_ *Server, _ *view.Snapshot, e *findings.Event) api.Event {
			event := api.Event{
				ID: e.ID, Time: e.Time.UTC(), Kind: e.Kind, Code: string(e.Code), Message: e.Message,
				Resource: e.Resource, Name: e.Name, Evidence: mapOrEmpty(e.Evidence),
			}
			if len(e.Clusters) > 0 {
				event.Cluster = e.Clusters[0]
			}
			return event
		},
		paths: []string{"/{id}"}, missing: "there is no event %[1]s: there never was, or it is too old",
	}, func(v *view.View) statedb.Table[*findings.Event] { return v.Findings.Events() },
		func(key string) (q statedb.Query[*findings.Event], err error) {
			id, err := strconv.ParseUint(key, 10, 64)
			if err != nil {
				return q, badRequest("event %q: want a number", key)
			}
			return findings.EventByID(id), nil
		})
}

func healthResource() *resource[view.HealthItem, api.Health] {
	return inSnapshot(&resource[view.HealthItem, api.Health]{
		name: view.Health, summary: "Health of modules, background tasks and cluster connections.",
		filters: []string{byCluster, byName},
		fixed:   func(q *query, h view.HealthItem) bool { return passes(q.cluster, h.Cluster) && passes(q.name, h.Name) },
		steady:  func(h *api.Health) { h.LastSuccess = nil },
		convert: func(_ *Server, _ *view.Snapshot, h view.HealthItem) api.Health {
			return api.Health{
				Name: h.Name, Cluster: h.Cluster, State: string(h.State), Message: h.Message,
				LastSuccess: timeOrNull(h.LastSuccess), LastFailure: timeOrNull(h.LastFailure), ConsecutiveFailures: h.ConsecutiveFailures,
			}
		},
		paths: []string{"/{name}"}, missing: "nothing with the name %[1]q reports its health",
	}, (*view.Snapshot).Health, func(h view.HealthItem) string { return h.Name })
}

// passes reports whether a value passes a filter; an empty one passes all.
func passes(filter, value string) bool { return filter == "" || filter == value }

// within reports whether every address of inner is one of outer.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
