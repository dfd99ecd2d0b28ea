package publish

import (
	"context"
	"log/slog"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// NodesParams say where nodes go.
type NodesParams struct {
	// Only is the one node that is published; empty is all of them.
	Only string
	// CiliumOnly leaves out machines without a CiliumNode, and does not read Nodes.
	CiliumOnly bool
	// To is where they are published; nil is nowhere.
	To Target
	// View takes them for our own view ([nodes.Nodes.Apply]); it may be nil.
	View func([]store.Change[nodes.Node])
	// Report is called with the objects that cannot be published completely, and the reasons, whenever these change; it
	// may be nil.
	Report func(error)
	Log    *slog.Logger
}

// Nodes publishes the machines of the cluster: what their CiliumNode says, and
// for those that have none, their Node.
type Nodes struct {
	NodesParams
	cluster *local.Cluster
	own     wire.ClusterInfo

	output
	seen map[string]*nodes.Node // what the view has
	refusals
}

// NewNodes returns what publishes nodes.
func NewNodes(cluster *local.Cluster, own wire.ClusterInfo, p NodesParams) *Nodes {
	return &Nodes{
		NodesParams: p, cluster: cluster, own: own,
		output: newOutput(p.To), seen: make(map[string]*nodes.Node),
		refusals: refusals{report: p.Report, why: make(map[string]string)},
	}
}

// Run publishes until ctx ends; it withdraws nothing then. It is called once.
func (n *Nodes) Run(ctx context.Context) error {
	tables := []table{
		tableOf(n.cluster.CiliumNodes, func(_ statedb.ReadTxn, o *local.CiliumNode, _ bool, t touch) { n.touch(o.Name, t) }),
	}
	if !n.CiliumOnly {
		tables = append(tables, tableOf(n.cluster.Nodes, func(_ statedb.ReadTxn, o *corev1.Node, _ bool, t touch) { n.touch(o.Name, t) }))
	}
	return follow(ctx, n.cluster, tables, func(txn statedb.ReadTxn, names []string) {
		var changes []store.Change[nodes.Node]
		for _, name := range names {
			changes = n.node(txn, name, changes)
		}
		n.tell()
		if n.View != nil {
			n.View(changes)
		}
	}, n.complete)
}

func (n *Nodes) touch(name string, t touch) {
	if n.Only == "" || n.Only == name {
		t(name)
	}
}

// node brings one node up to date. If it cannot be published, its previous entry stays.
func (n *Nodes) node(txn statedb.ReadTxn, name string, changes []store.Change[nodes.Node]) []store.Change[nodes.Node] {
	value, found, err := n.value(txn, name)
	if n.judge(name, err) {
		if value == nil {
			n.Log.Warn("Cannot publish a node as it is; its previous entry stays", "node", name, "error", err)
		} else {
			n.Log.Warn("Published a node without what cannot be read of it", "node", name, "error", err)
		}
	}
	switch {
	case !found:
		n.set(name, nil)
		return n.view(name, nil, changes)
	case value == nil:
		return changes
	}
	if n.to != nil {
		n.set(name, value.Encode())
	}
	return n.view(name, nodes.FromWire(value, wire.ParseSource(value.Source)), changes)
}

// value is the value to publish for a node, if there is one. The error names the parts that are left out, or is the
// reason why the value is nil.
func (n *Nodes) value(txn statedb.ReadTxn, name string) (value *wire.Node, found bool, err error) {
	if o, is := n.cluster.CiliumNodes.Get(txn, name); is {
		value, err = CiliumNode(n.own, o)
	} else if o, is := n.cluster.Nodes.Get(txn, name); is && !n.CiliumOnly {
		value, err = Node(n.own, o)
	} else {
		return nil, false, nil
	}
	if value != nil {
		if wrong := value.CheckNames(); wrong != nil {
			return nil, true, wrong
		}
	}
	return value, true, err
}

// view adds the change of a node in the view; now is nil for a removed one. An entry from a weaker source cannot
// replace the previous one (spec wire.md §4.1), so the previous one is deleted first.
func (n *Nodes) view(name string, now *nodes.Node, changes []store.Change[nodes.Node]) []store.Change[nodes.Node] {
	if n.View == nil {
		return changes
	}
	was := n.seen[name]
	if was != nil && (now == nil || !now.Source.MayReplace(was.Source)) {
		changes = append(changes, store.Change[nodes.Node]{Name: name, Old: was})
		was = nil
		delete(n.seen, name)
	}
	if now != nil {
		changes = append(changes, store.Change[nodes.Node]{Name: name, Old: was, New: now})
		n.seen[name] = now
	}
	return changes
}
