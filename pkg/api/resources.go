package api

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func clusterResource() *resource[remotecluster.Status, Cluster] {
	return inSnapshot(&resource[remotecluster.Status, Cluster]{
		name: view.Clusters, summary: "The remote clusters.", filters: []string{byCluster, byName},
		fixed: func(q *query, c remotecluster.Status) bool {
			return passes(q.cluster, c.Name) && passes(q.name, c.Name)
		},
		convert: func(s *Server, _ *view.Snapshot, c remotecluster.Status) Cluster { return s.cluster(c, s.now()) },
		steady:  steadyCluster,
		paths:   []string{"/{name}"}, missing: "there is no cluster %q",
	}, (*view.Snapshot).Clusters, view.ClusterKey)
}

// steadyCluster leaves out what moves all the time, as the view does: also until when a copy is
// confirmed, while it is.
func steadyCluster(c *Cluster) {
	c.LastEvent, c.HeartbeatAgeSeconds, c.Policy = nil, nil, c.Policy.steady()
	c.Freshness.Worst = Freshness{State: c.Freshness.Worst.State}
	for _, f := range c.Freshness.All() {
		*f = Freshness{State: f.State, AsOf: f.AsOf, Message: f.Message}
		if f.State == string(remotecluster.FreshnessSynced) {
			f.AsOf = nil
		}
	}
}

func nodeResource() *resource[*nodes.Node, Node] {
	return inTable(&resource[*nodes.Node, Node]{
		name: view.Nodes, summary: "The nodes of the clusters.", filters: []string{byCluster, byName, byPrefix, byLabels},
		fixed: func(q *query, n *nodes.Node) bool { return passes(q.cluster, n.Cluster) && passes(q.name, n.Name) },
		match: func(_ *Server, _ *view.Snapshot, q *query, n *nodes.Node) bool {
			return nodePasses(q.prefix, n) && q.labels.Matches(maps.All(n.Labels))
		},
		convert: func(_ *Server, _ *view.Snapshot, n *nodes.Node) Node { return toNode(n) },
		paths:   []string{"/{cluster}/{name}"}, missing: "there is no node %[2]q in cluster %[1]q",
	}, func(v *view.View) statedb.Table[*nodes.Node] { return v.Nodes },
		func(key string) (statedb.Query[*nodes.Node], error) { return nodes.ByKey(key), nil })
}

// nodePasses tells whether an address of the node is within the prefix, or one
// of its pod networks.
func nodePasses(p netip.Prefix, n *nodes.Node) bool {
	if !p.IsValid() {
		return true
	}
	return slices.ContainsFunc(n.Addresses, func(a nodes.Address) bool { return p.Contains(a.IP) }) ||
		slices.ContainsFunc(n.PodCIDRs, func(c netip.Prefix) bool { return within(p, c) })
}

func serviceResource() *resource[*services.Global, Service] {
	return inTable(&resource[*services.Global, Service]{
		name: view.Services, summary: "The services that clusters share, and the own cluster's.",
		filters: []string{byCluster, byNamespace, byName, byLabels},
		fixed: func(q *query, g *services.Global) bool {
			return passes(q.namespace, g.Namespace) && passes(q.name, g.Name)
		},
		// One cluster's part has to pass everything.
		match: func(_ *Server, _ *view.Snapshot, q *query, g *services.Global) bool {
			return slices.ContainsFunc(g.Parts, func(p *services.Service) bool {
				return passes(q.cluster, p.Cluster) && q.labels.Matches(maps.All(p.Labels))
			})
		},
		convert: toService,
		alone:   doubtService,
		paths:   []string{"/{namespace}/{name}"}, missing: "no cluster shares a service %[2]q in namespace %[1]q",
	}, func(v *view.View) statedb.Table[*services.Global] { return v.Services },
		func(key string) (statedb.Query[*services.Global], error) {
			namespace, name, ok := strings.Cut(key, "/")
			if !ok {
				return statedb.Query[*services.Global]{}, errCursor()
			}
			return services.GlobalByName(namespace, name), nil
		})
}

func identityResource() *resource[*allocator.Identity, Identity] {
	res := inTable(&resource[*allocator.Identity, Identity]{
		name: view.Identities, summary: "The identities of the clusters.",
		filters: []string{byCluster, byNamespace, byIdentity, byLabels},
		fixed: func(q *query, i *allocator.Identity) bool {
			return passes(q.cluster, i.Cluster) && (q.identity == nil || *q.identity == i.ID)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, i *allocator.Identity) bool {
			return (q.namespace == "" || hasNamespace(i, q.namespace)) && q.labels.Matches(labelsOf(i))
		},
		convert: func(_ *Server, _ *view.Snapshot, i *allocator.Identity) Identity { return toIdentity(i) },
		paths:   []string{"/{id}"},
	}, func(v *view.View) statedb.Table[*allocator.Identity] { return v.Identities },
		func(key string) (statedb.Query[*allocator.Identity], error) {
			number, cluster, ok := strings.Cut(key, "/")
			id, err := strconv.ParseUint(number, 10, 32)
			if err != nil || !ok {
				return statedb.Query[*allocator.Identity]{}, errCursor()
			}
			return allocator.ByKey(uint32(id), cluster), nil
		})
	// The number alone is no key: several clusters may have it.
	res.one = func(s *Server, v *view.Snapshot, path func(string) string) (*allocator.Identity, error) {
		id, err := parseIdentity(path("id"))
		if err != nil {
			return nil, err
		}
		for i := range allocator.ByID(v.Txn, s.View.Identities, *id) {
			return i, nil
		}
		return nil, notFound("there is no identity %d", *id)
	}
	return res
}

// labelsOf iterates over the labels as they are shown, with their sources.
func labelsOf(i *allocator.Identity) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for l := range i.Labels.All() {
			if !yield(l.Source+":"+l.Key, l.Value) {
				return
			}
		}
	}
}

func hasNamespace(i *allocator.Identity, namespace string) bool {
	for l := range i.Labels.All() {
		if l.Key == wire.LabelNamespace && l.Value == namespace {
			return true
		}
	}
	return false
}

func healthResource() *resource[view.HealthItem, Health] {
	return inSnapshot(&resource[view.HealthItem, Health]{
		name: view.Health, summary: "What modules, background tasks and cluster connections say of themselves.",
		filters: []string{byCluster, byName},
		fixed:   func(q *query, h view.HealthItem) bool { return passes(q.cluster, h.Cluster) && passes(q.name, h.Name) },
		steady:  func(h *Health) { h.LastSuccess = nil },
		convert: func(_ *Server, _ *view.Snapshot, h view.HealthItem) Health { return toHealth(h) },
		paths:   []string{"/{name}"}, missing: "nothing with the name %q reports its health",
	}, (*view.Snapshot).Health, view.HealthKey)
}

// passes tells whether a value passes a filter; an empty one passes all.
func passes(filter, value string) bool { return filter == "" || filter == value }

// within tells whether every address of inner is one of outer.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
