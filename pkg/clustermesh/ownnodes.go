package clustermesh

import (
	"context"
	"log/slog"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// NodeDelay is when a node of our own cluster that has vanished from its kvstore
// is believed to be gone (wire.md §5). Its agent may be starting again, or have
// lost its lease, and then puts the node back.
const NodeDelay = 30 * time.Second

// ownNodes is the source of the own cluster's nodes. Their deletions come late,
// unless everything is withdrawn: then nobody comes back.
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

// believe applies deletions when they are due, until ctx ends. What is due later
// is so in the next call.
func (o ownNodes) believe(ctx context.Context) {
	_ = o.delayed.Run(ctx) // its error is the context's
}
