package clustermesh

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Consumer returns a function that returns the consumer for a cluster, which fills the view. It is for [Params].
func (v *View) Consumer(m *store.Metrics) func(Target) remotecluster.Consumer {
	return func(t Target) remotecluster.Consumer {
		log := t.Log.With("cluster", t.Name)
		if t.Own {
			return v.ownReader(t, m, log)
		}
		return &reader{view: v, cluster: t.Name, sources: v.sources(t, m, log)}
	}
}

// reader fills the view with one cluster.
type reader struct {
	view    *View
	cluster string
	sources []remotecluster.Source
	nodes   *ownNodes // of the own cluster; nil otherwise
}

// Sources implements [remotecluster.Consumer].
func (r *reader) Sources() []remotecluster.Source { return r.sources }

// SkipOptional implements [remotecluster.Consumer]: an agent works without optional resources.
func (r *reader) SkipOptional() bool { return true }

// Follow implements [remotecluster.Consumer].
func (r *reader) Follow(ctx context.Context) {
	if r.nodes != nil {
		_ = r.nodes.delayed.Run(ctx) // applies deletions when they are due; the error is that of ctx
	}
}

// Withhold implements [remotecluster.Consumer].
func (r *reader) Withhold(yes bool) { r.view.Services.Withhold(r.cluster, yes) }

// ownReader returns the reader of the own cluster: its nodes, and the resources from a description, have
// other sources than those of remote clusters.
func (v *View) ownReader(t Target, m *store.Metrics, log *slog.Logger) *reader {
	own := v.ownNodes(t.Changed, m, log)
	r := &reader{view: v, cluster: t.Name, sources: v.sources(t, m, log), nodes: &own}
	for i, s := range r.sources {
		switch of := s.Resource(); {
		case of == wire.Nodes:
			r.sources[i] = own
		case v.Described != nil && (of == wire.Services || of == wire.EndpointSlices):
			r.sources[i] = described{of, v.Described}
		}
	}
	return r
}

func (v *View) sources(t Target, m *store.Metrics, log *slog.Logger) []remotecluster.Source {
	var all []remotecluster.Source
	for _, f := range v.feeds() {
		if v.Reads == nil || v.Reads(t.Own, f.resource) {
			all = append(all, f.source(t.Changed, m, log))
		}
	}
	return all
}

// described is the source of a resource of the own cluster that is read from its description. It
// only reports the status.
type described struct {
	resource wire.Resource
	status   func(wire.Resource) store.Status
}

func (d described) Resource() wire.Resource { return d.resource }
func (d described) Status() store.Status    { return d.status(d.resource) }
func (d described) Observe(kvstore.Probe)   {}
func (d described) Drain()                  {}

func (d described) Find(string) (store.Found, bool) { return store.Found{}, false }

func (d described) Run(ctx context.Context, _ store.Session) error {
	<-ctx.Done()
	return ctx.Err()
}

func watch[T any](r wire.Resource, decode func(wire.Expect) store.Decode[T], apply func([]store.Change[T]), refused func(), m *store.Metrics, log *slog.Logger) remotecluster.Source {
	return store.NewWatch(store.Kind[T]{Resource: r, Decode: decode, Apply: apply, Refused: refused, Metrics: m}, log)
}

func (v *View) applyIPs(changes []store.Change[ipcache.Entry]) {
	ops := make([]ipcache.Op, len(changes))
	for i, ch := range changes {
		ops[i] = ipcache.Op{Old: ch.Old, New: ch.New}
	}
	v.IPs.Apply(ops)
}

// ApplyNodes returns a function that applies each batch of nodes twice: to the nodes, and to the
// claims on addresses that they make. New claims are applied before obsolete ones are removed (wire.md §4.3).
func (v *View) ApplyNodes() func([]store.Change[nodes.Node]) {
	claimant := new(ipcache.Cluster) // shared by the entries of one cluster
	return func(changes []store.Change[nodes.Node]) {
		v.Nodes.Apply(changes)
		var ops []ipcache.Op
		for _, ch := range changes {
			if n := cmp.Or(ch.New, ch.Old); n.Cluster != claimant.Name || n.ClusterID != claimant.ID {
				claimant = &ipcache.Cluster{Name: n.Cluster, ID: n.ClusterID}
			}
			ops = appendNode(ops, ch, claimant)
		}
		v.IPs.Apply(ops)
		v.judgeBackends()
	}
}

func appendNode(ops []ipcache.Op, ch store.Change[nodes.Node], claimant *ipcache.Cluster) []ipcache.Op {
	old := claimsOf(ch.Old, claimant)
	for key, e := range claimsOf(ch.New, claimant) {
		ops = append(ops, ipcache.Op{Old: old[key], New: e})
		delete(old, key)
	}
	for _, e := range old {
		ops = append(ops, ipcache.Op{Old: e})
	}
	return ops
}

// claimKey identifies a claim among those of one node.
type claimKey struct {
	prefix netip.Prefix
	kind   ipcache.Kind
}

func claimsOf(n *nodes.Node, cluster *ipcache.Cluster) map[claimKey]*ipcache.Entry {
	if n == nil {
		return nil
	}
	made := make(map[claimKey]*ipcache.Entry)
	for _, c := range n.Claims() {
		kind := kindOf(c.Role)
		made[claimKey{c.Prefix, kind}] = ipcache.NewEntry(ipcache.Spec{
			Prefix: c.Prefix, Cluster: cluster, Kind: kind, Source: n.Source, Identity: c.Role.Identity(),
			EncryptionKey: c.EncryptionKey, HostIP: c.HostIP, Name: n.Name,
		})
	}
	return made
}

func kindOf(r nodes.Role) ipcache.Kind {
	switch r {
	case nodes.RolePodCIDR:
		return ipcache.KindPodCIDR
	case nodes.RoleHealth:
		return ipcache.KindHealth
	case nodes.RoleIngress:
		return ipcache.KindIngress
	default:
		return ipcache.KindNode
	}
}

// NodeDelay is how long after its deletion from the kvstore a node of our own cluster
// counts as removed (wire.md §5). Its agent may be restarting, or may have lost its lease,
// and then writes the node again.
const NodeDelay = 30 * time.Second

// ownNodes is the source of the own cluster's nodes. Deletions are applied with a delay,
// except when everything is withdrawn: then no node is written again.
type ownNodes struct {
	remotecluster.Source
	delayed *store.Delayed[nodes.Node]
}

func (v *View) ownNodes(refused func(), m *store.Metrics, log *slog.Logger) ownNodes {
	delayed := store.NewDelayed(v.NodeDelay, v.ApplyNodes())
	return ownNodes{watch(wire.Nodes, decodeNode, delayed.Apply, refused, m, log), delayed}
}

// Drain implements [remotecluster.Source].
func (o ownNodes) Drain() {
	o.Source.Drain()
	o.delayed.Flush()
}
