// Package register makes a node a member of its cluster's kvstore, as an agent in
// Cilium's kvstore mode does: the node itself, and the addresses of its pods with
// their identities, which it allocates. What it wrote is kept alive, put back when
// it is lost, and ends with the node's lease.
//
// Concurrency: [Node.Run] owns every goroutine.
package register

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/identity"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/publish"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// How often what this node has written is looked at although nothing was heard of
// it (wire.md §5).
const (
	nodeReassert    = 30 * time.Minute
	addressReassert = 5 * time.Minute
)

// Params is what a Node is made of.
type Params struct {
	// Own is the cluster, Name the node.
	Own  wire.ClusterInfo
	Name string
	// Suffix ends the keys of the node's identity references: see
	// [identity.NodeSuffix].
	Suffix string
	// Source is the description of the cluster.
	Source *local.Cluster
	// GlobalNamespaces: namespaces that say nothing are global (wire.md §4.5).
	GlobalNamespaces bool
	// Labels chooses the labels that make an identity.
	Labels *publish.LabelFilter
	// Writer writes to the cluster's kvstore.
	Writer kvstore.Writer
	// PeriodicSync is how often identities in use are written again if missing.
	PeriodicSync time.Duration
	// Metrics are those of what is written; nil is none.
	Metrics *store.SyncMetrics
	Log     *slog.Logger
}

// Node is this node as its cluster sees it.
type Node struct {
	Params
	allocator *allocator.Allocator
	ids       *identity.Allocator
}

// New returns a node that is not registered yet. The error is about the cluster.
func New(p Params) (*Node, error) {
	if err := p.Own.ValidateStrict(); err != nil {
		return nil, err
	}
	layout, err := wire.NewLayout(p.Own.MaxConnectedClusters)
	if err != nil {
		return nil, err
	}
	b, err := kvbackend.New(p.Writer, kvbackend.Config{
		Paths: wire.IdentityAllocation, Node: p.Suffix, Keys: identity.Key{}, Log: p.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("registering the node: %w", err)
	}
	n := &Node{Params: p}
	n.allocator, err = allocator.NewAllocator(b, allocator.WithCluster(layout, p.Own.ID),
		allocator.WithMasterKeyProtection(), allocator.WithSyncInterval(p.PeriodicSync), allocator.WithLogger(p.Log))
	if err != nil {
		return nil, fmt.Errorf("registering the node: %w", err)
	}
	n.ids, err = identity.NewAllocator(identity.Cluster{Name: p.Own.Name, ID: p.Own.ID, Layout: layout}, n.allocator)
	return n, err
}

// Run keeps the node registered, until ctx ends. Nothing is withdrawn then.
func (n *Node) Run(ctx context.Context) error {
	outbox := store.NewOutbox(n.Writer, nil, n.Metrics, n.Log)
	nodes := n.newSync(outbox, wire.Nodes.Prefix(n.Own.Name, false), nodeReassert)
	addresses := n.newSync(outbox, wire.IPs.Prefix(n.Own.Name, false), addressReassert)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return outbox.Run(ctx) })
	g.Go(func() error { return nodes.Run(ctx) })
	g.Go(func() error { return addresses.Run(ctx) })
	g.Go(func() error { return n.allocator.Run(ctx) })
	g.Go(func() error {
		return publish.NewNodes(n.Source, n.Own, publish.NodesParams{Only: n.Name, To: nodes, Log: n.Log}).Run(ctx)
	})
	g.Go(func() error {
		return publish.NewPods(n.Source, n.Own, publish.PodsParams{
			Node: n.Name, DefaultGlobalNamespace: n.GlobalNamespaces, Labels: n.Labels,
			Allocate: n.allocate, Release: n.release, To: addresses, Log: n.Log,
		}).Run(ctx)
	})
	return g.Wait()
}

func (n *Node) newSync(outbox *store.Outbox, prefix string, reassert time.Duration) *store.Sync {
	return store.NewSync(store.SyncParams{
		Prefix: prefix, Shared: true, Outbox: outbox, Cluster: n.Own.Name, Reassert: reassert, Log: n.Log,
	})
}

func (n *Node) allocate(ctx context.Context, labels wire.Labels) (uint32, error) {
	id, _, err := n.ids.Allocate(ctx, labels)
	return id, err
}

func (n *Node) release(ctx context.Context, labels wire.Labels) error {
	_, err := n.ids.Release(ctx, labels)
	return err
}
