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
func (v *Ingest) Consumer(m *store.Metrics) func(Target) remotecluster.Consumer {
	return func(t Target) remotecluster.Consumer {
		log := t.Log.With("cluster", t.Name)
		if t.Own {
			return v.ownConsumer(t, m, log)
		}
		return &consumer{ingest: v, cluster: t.Name, families: v.families(t, m, log)}
	}
}

// consumer fills the view with one cluster.
type consumer struct {
	ingest   *Ingest
	cluster  string
	families []remotecluster.Family
	nodes    *ownNodes // of the own cluster; nil otherwise
}

// Families implements [remotecluster.Consumer].
func (r *consumer) Families() []remotecluster.Family { return r.families }

// SkipOptional implements [remotecluster.Consumer]: an agent works without optional resources.
func (r *consumer) SkipOptional() bool { return true }

// Follow implements [remotecluster.Consumer].
func (r *consumer) Follow(ctx context.Context) {
	if r.nodes != nil {
		_ = r.nodes.delayed.Run(ctx) // applies deletions when they are due; the error is that of ctx
	}
}

// Withhold implements [remotecluster.Consumer].
func (r *consumer) Withhold(yes bool) { r.ingest.Services.Withhold(r.cluster, yes) }

// ownConsumer returns the consumer of the own cluster: its nodes, and the resources from a description, have
// other families than those of remote clusters.
func (v *Ingest) ownConsumer(t Target, m *store.Metrics, log *slog.Logger) *consumer {
	own := v.ownNodes(t.Changed, m, log)
	r := &consumer{ingest: v, cluster: t.Name, families: v.families(t, m, log), nodes: &own}
	for i, s := range r.families {
		switch of := s.Resource(); {
		case of == wire.Nodes:
			r.families[i] = own
		case v.Described != nil && (of == wire.Services || of == wire.EndpointSlices):
			r.families[i] = described{of, v.Described}
		}
	}
	return r
}

func (v *Ingest) families(t Target, m *store.Metrics, log *slog.Logger) []remotecluster.Family {
	var all []remotecluster.Family
	for _, f := range v.feeds() {
		if v.Reads == nil || v.Reads(t.Own, f.resource) {
			all = append(all, f.family(t.Changed, m, log))
		}
	}
	return all
}

// described is the family of a resource of the own cluster that is read from its description. It
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

func watch[T any](r wire.Resource, decode func(wire.Expect) store.Decode[T], apply func([]store.Change[T]), refused func(), m *store.Metrics, log *slog.Logger) remotecluster.Family {
	return store.NewWatch(store.Kind[T]{Resource: r, Decode: decode, Apply: apply, Refused: refused, Metrics: m}, log)
}

func (v *Ingest) applyIPs(changes []store.Change[ipcache.Entry]) {
	ops := make([]ipcache.Op, len(changes))
	for i, ch := range changes {
		ops[i] = ipcache.Op{Old: ch.Old, New: ch.New}
	}
	v.IPs.Apply(ops)
}

// ApplyNodes returns a function that applies each batch of nodes twice: to the nodes, and to the
// claims on addresses that they make. New claims are applied before obsolete ones are removed (wire.md §4.3).
func (v *Ingest) ApplyNodes() func([]store.Change[nodes.Node]) {
	claimant := new(ipcache.Claimant) // shared by the entries of one cluster
	return func(changes []store.Change[nodes.Node]) {
		v.Nodes.Apply(changes)
		var ops []ipcache.Op
		for _, ch := range changes {
			if n := cmp.Or(ch.New, ch.Old); n.Cluster != claimant.Name || n.ClusterID != claimant.ID {
				claimant = &ipcache.Claimant{Name: n.Cluster, ID: n.ClusterID}
			}
			ops = appendNode(ops, ch, claimant)
		}
		v.IPs.Apply(ops)
		v.judgeBackends()
	}
}

func appendNode(ops []ipcache.Op, ch store.Change[nodes.Node], claimant *ipcache.Claimant) []ipcache.Op {
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

func claimsOf(n *nodes.Node, cluster *ipcache.Claimant) map[claimKey]*ipcache.Entry {
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

// ownNodes is the family of the own cluster's nodes. Deletions are applied with a delay, but
// a drain removes all nodes at once.
type ownNodes struct {
	remotecluster.Family
	delayed *store.Delayed[nodes.Node]
}

func (v *Ingest) ownNodes(refused func(), m *store.Metrics, log *slog.Logger) ownNodes {
	o := ownNodes{delayed: store.NewDelayed(v.NodeDelay, v.ApplyNodes())}
	var watched remotecluster.Family
	watched = watch(wire.Nodes, decodeNode, func(changes []store.Change[nodes.Node]) {
		o.delayed.Apply(changes, watched.Status().AsOf)
	}, refused, m, log)
	o.Family = watched
	return o
}

// Status implements [remotecluster.Family].
func (o ownNodes) Status() store.Status {
	st := o.Family.Status()
	st.Held, _ = o.delayed.AsOf()
	return st
}

// Drain implements [remotecluster.Family].
func (o ownNodes) Drain() {
	o.Family.Drain()
	o.delayed.Flush()
}
