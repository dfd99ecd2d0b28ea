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
	return &resource[remotecluster.Status, Cluster]{
		name: view.Clusters, summary: "The remote clusters.", filters: []string{byCluster, byName},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[remotecluster.Status], error) {
			return afterName(v.Clusters(), q.after, view.ClusterKey), nil
		},
		fixed: func(q *query, c remotecluster.Status) bool {
			return passes(q.cluster, c.Name) && passes(q.name, c.Name)
		},
		convert:  func(s *Server, _ *view.Snapshot, c remotecluster.Status) Cluster { return s.cluster(c, s.now()) },
		settle:   settleCluster,
		onePaths: []string{"/{name}"},
		one: func(s *Server, _ *view.Snapshot, path func(string) string) (remotecluster.Status, error) {
			name := path("name")
			for _, c := range s.View.Clusters() {
				if c.Name == name {
					return c, nil
				}
			}
			return remotecluster.Status{}, notFound("there is no cluster %q", name)
		},
	}
}

// settleCluster leaves out what moves all the time, as the view does: also until when a copy is
// confirmed, while it is.
func settleCluster(c *Cluster) {
	c.LastEvent, c.HeartbeatAgeSeconds, c.Policy = nil, nil, c.Policy.settled()
	c.Freshness.Worst = Freshness{State: c.Freshness.Worst.State}
	for _, f := range c.Freshness.All() {
		*f = Freshness{State: f.State, AsOf: f.AsOf, Message: f.Message}
		if f.State == string(remotecluster.FreshnessSynced) {
			f.AsOf = nil
		}
	}
}

func nodeResource() *resource[*nodes.Node, Node] {
	return &resource[*nodes.Node, Node]{
		name: view.Nodes, summary: "The nodes of the clusters.", filters: []string{byCluster, byName, byPrefix, byLabels},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[*nodes.Node], error) {
			query := func() statedb.Query[*nodes.Node] { return nodes.ByKey(q.after) }
			return after(s.View.Nodes, v.Txn, q.after, (*nodes.Node).Key, query), nil
		},
		fixed: func(q *query, n *nodes.Node) bool { return passes(q.cluster, n.Cluster) && passes(q.name, n.Name) },
		match: func(_ *Server, _ *view.Snapshot, q *query, n *nodes.Node) bool {
			return nodePasses(q.prefix, n) && q.labels.Matches(maps.All(n.Labels))
		},
		convert:  func(_ *Server, _ *view.Snapshot, n *nodes.Node) Node { return toNode(n) },
		onePaths: []string{"/{cluster}/{name}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*nodes.Node, error) {
			n, _, found := s.View.Nodes.Get(v.Txn, nodes.ByName(path("cluster"), path("name")))
			if !found {
				return nil, notFound("there is no node %q in cluster %q", path("name"), path("cluster"))
			}
			return n, nil
		},
	}
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
	return &resource[*services.Global, Service]{
		name: view.Services, summary: "The services that clusters share, and the own cluster's.",
		filters: []string{byCluster, byNamespace, byName, byLabels},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[*services.Global], error) {
			namespace, name, ok := strings.Cut(q.after, "/")
			if q.after != "" && !ok {
				return nil, errCursor()
			}
			query := func() statedb.Query[*services.Global] { return services.GlobalByName(namespace, name) }
			return after(s.View.Services, v.Txn, q.after, (*services.Global).FullName, query), nil
		},
		fixed: func(q *query, g *services.Global) bool {
			return passes(q.namespace, g.Namespace) && passes(q.name, g.Name)
		},
		// One cluster's part has to pass everything.
		match: func(_ *Server, _ *view.Snapshot, q *query, g *services.Global) bool {
			return slices.ContainsFunc(g.Parts, func(p *services.Service) bool {
				return passes(q.cluster, p.Cluster) && q.labels.Matches(maps.All(p.Labels))
			})
		},
		convert:  toService,
		alone:    doubtService,
		onePaths: []string{"/{namespace}/{name}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*services.Global, error) {
			g, _, found := s.View.Services.Get(v.Txn, services.GlobalByName(path("namespace"), path("name")))
			if !found {
				return nil, notFound("no cluster shares a service %q in namespace %q", path("name"), path("namespace"))
			}
			return g, nil
		},
	}
}

func identityResource() *resource[*allocator.Identity, Identity] {
	return &resource[*allocator.Identity, Identity]{
		name: view.Identities, summary: "The identities of the clusters.",
		filters: []string{byCluster, byNamespace, byIdentity, byLabels},
		from:    identitiesFrom,
		fixed: func(q *query, i *allocator.Identity) bool {
			return passes(q.cluster, i.Cluster) && (q.identity == nil || *q.identity == i.ID)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, i *allocator.Identity) bool {
			return (q.namespace == "" || hasNamespace(i, q.namespace)) && q.labels.Matches(labelsOf(i))
		},
		convert:  func(_ *Server, _ *view.Snapshot, i *allocator.Identity) Identity { return toIdentity(i) },
		onePaths: []string{"/{id}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*allocator.Identity, error) {
			id, err := parseIdentity(path("id"))
			if err != nil {
				return nil, err
			}
			for i := range allocator.ByID(v.Txn, s.View.Identities, *id) {
				return i, nil
			}
			return nil, notFound("there is no identity %d", *id)
		},
	}
}

func identitiesFrom(s *Server, v *view.Snapshot, q *query) (iter.Seq[*allocator.Identity], error) {
	number, cluster, ok := strings.Cut(q.after, "/")
	id, err := strconv.ParseUint(number, 10, 32)
	if q.after != "" && (!ok || err != nil) {
		return nil, errCursor()
	}
	query := func() statedb.Query[*allocator.Identity] { return allocator.ByKey(uint32(id), cluster) }
	return after(s.View.Identities, v.Txn, q.after, view.IdentityKey, query), nil
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
	return &resource[view.HealthItem, Health]{
		name: view.Health, summary: "What modules, background tasks and cluster connections say of themselves.",
		filters: []string{byCluster, byName},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[view.HealthItem], error) {
			return afterName(v.Health(), q.after, view.HealthKey), nil
		},
		fixed:    func(q *query, h view.HealthItem) bool { return passes(q.cluster, h.Cluster) && passes(q.name, h.Name) },
		settle:   func(h *Health) { h.LastSuccess = nil },
		convert:  func(_ *Server, _ *view.Snapshot, h view.HealthItem) Health { return toHealth(h) },
		onePaths: []string{"/{name}"},
		one: func(s *Server, _ *view.Snapshot, path func(string) string) (view.HealthItem, error) {
			for _, h := range s.View.HealthItems() {
				if h.Name == path("name") {
					return h, nil
				}
			}
			return view.HealthItem{}, notFound("nothing with the name %q reports its health", path("name"))
		},
	}
}

// passes tells whether a value passes a filter; an empty one passes all.
func passes(filter, value string) bool { return filter == "" || filter == value }

// afterName iterates over a sorted slice, strictly after a name.
func afterName[T any](sorted []T, name string, nameOf func(T) string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, v := range sorted {
			if nameOf(v) > name && !yield(v) {
				return
			}
		}
	}
}

// within tells whether every address of inner is one of outer.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
