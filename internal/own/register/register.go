// Package register makes a node a member of its cluster's kvstore, as an agent in Cilium's kvstore mode does: the node
// itself, and the addresses of its pods with their identities, which it allocates. Its entries are kept alive, written
// again when they are lost, and end with the node's lease.
//
// Concurrency: [Node.Run] owns every goroutine.
package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// How often what this node has written is looked at although nothing was heard of it (wire.md §5).
const (
	nodeReassert    = 30 * time.Minute
	addressReassert = 5 * time.Minute
)

// Params is what a Node is made of.
type Params struct {
	// Own is the cluster, Name the node.
	Own  wire.ClusterInfo
	Name string
	// Address is the node's; invalid: what the description says of it, or else
	// Guess. It ends the keys of the node's identity references.
	Address netip.Addr
	Guess   func() (netip.Addr, error)
	// Source is the description of the cluster.
	Source *local.Cluster
	// GlobalNamespaces: namespaces that say nothing are global (wire.md §4.5).
	GlobalNamespaces bool
	// Labels chooses the labels that make an identity.
	Labels *publish.LabelFilter
	// Writer writes to the cluster's kvstore.
	Writer kvstore.Writer
	// Registered is called when everything that is known of the node has been written; it may be nil.
	Registered func()
	// PeriodicSync is how often identities in use are written again if missing.
	PeriodicSync time.Duration
	// Metrics are those of the writes; nil is none.
	Metrics *syncstore.Metrics
	// Identities are those of the allocation of identities; nil is none.
	Identities *allocator.Metrics
	// Allocation configures where identities are allocated; the node sets its own fields in it. The zero value is the
	// kvstore.
	Allocation modes.Config
	Log        *slog.Logger
}

// Node is this node as its cluster sees it.
type Node struct {
	Params
	layout wire.Layout
	ids    *identity.Allocator // set by Run
	pods   *publish.Pods       // set by Run
}

// New returns a node that is not registered yet. The error is about the cluster.
func New(p Params) (*Node, error) {
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	if err := p.Own.ValidateStrict(); err != nil {
		return nil, err
	}
	layout, err := wire.NewLayout(p.Own.MaxConnectedClusters)
	if err != nil {
		return nil, err
	}
	return &Node{Params: p, layout: layout}, nil
}

// Run keeps the node registered, until ctx ends. Nothing is withdrawn then.
func (n *Node) Run(ctx context.Context) error {
	outbox := syncstore.NewOutbox(n.Writer, nil, n.Metrics, n.Log)
	nodes := n.newSync(outbox, wire.Nodes.Prefix(n.Own.Name, false), nodeReassert)
	addresses := n.newSync(outbox, wire.IPs.Prefix(n.Own.Name, false), addressReassert)
	n.pods = publish.NewPods(n.Source, n.Own, publish.PodsParams{
		Node: n.Name, DefaultGlobalNamespace: n.GlobalNamespaces, Labels: n.Labels,
		To: addresses, Log: n.Log,
		Allocate: func(ctx context.Context, labels wire.Labels) (uint32, error) {
			id, _, err := n.ids.Allocate(ctx, labels)
			return id, err
		},
		Release: func(ctx context.Context, labels wire.Labels) error {
			_, err := n.ids.Release(ctx, labels)
			return err
		},
	})
	ids, kept, err := n.allocator(ctx)
	if err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	own := publish.NewNodes(n.Source, n.Own, publish.NodesParams{Only: n.Name, To: nodes, Log: n.Log})
	runs := []func(context.Context) error{outbox.Run, nodes.Run, addresses.Run, ids.Run, kept.Run, own.Run, n.pods.Run}
	return waiting.Together(ctx, append(runs, func(ctx context.Context) error {
		if err := errors.Join(nodes.WaitClean(ctx), addresses.WaitClean(ctx)); err != nil {
			return err
		}
		n.Log.Info("Registered", "node", n.Name)
		if n.Registered != nil {
			n.Registered()
		}
		return nil
	})...)
}

// allocator makes what gives identities to the node's pods, and what keeps their references.
func (n *Node) allocator(ctx context.Context) (*allocator.Allocator, *modes.Backend, error) {
	suffix, err := n.suffix(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := n.Allocation
	c.Writer, c.Node, c.Keys, c.Log, c.Metrics = n.Writer, suffix, identity.Key{}, n.Log, n.Identities
	b, err := modes.New(c)
	if err != nil {
		return nil, nil, err
	}
	own := identity.Owner{Name: n.Own.Name, ID: n.Own.ID, Layout: n.layout}
	ids, err := allocator.NewAllocator(b.Backend, allocator.WithCluster(n.layout, n.Own.ID), allocator.WithValidator(own.AcceptOwn),
		allocator.WithMasterKeyProtection(), allocator.WithMoved(n.moved), allocator.WithSyncInterval(n.PeriodicSync), allocator.WithLogger(n.Log), allocator.WithMetrics(n.Identities))
	if err != nil {
		return nil, nil, err
	}
	n.ids, err = identity.NewAllocator(own, ids)
	return ids, b, err
}

// suffix ends the keys of the node's references: its address.
func (n *Node) suffix(ctx context.Context) (string, error) {
	if n.Address.IsValid() {
		return identity.NodeSuffix(n.Address)
	}
	if err := n.Source.Nodes.WaitListed(ctx); err != nil {
		return "", err
	}
	if node, found := n.Source.Nodes.Get(n.Source.ReadTxn(), n.Name); found {
		var internal []netip.Addr
		for _, a := range node.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				internal = append(internal, ip)
			}
		}
		if suffix, err := identity.NodeSuffix(internal...); err == nil {
			return suffix, nil
		}
	}
	guess, err := n.Guess()
	if err != nil {
		return "", err
	}
	return identity.NodeSuffix(guess)
}

func (n *Node) newSync(outbox *syncstore.Outbox, prefix string, reassert time.Duration) *syncstore.Sync {
	return syncstore.New(syncstore.Params{
		Prefix: prefix, Shared: true, Sole: true, Outbox: outbox, Cluster: n.Own.Name, Reassert: reassert, Log: n.Log,
	})
}

// moved has the pods with these labels published with their other number.
func (n *Node) moved(key allocator.Key, from, to uint64) {
	n.pods.Renumber(key.GetKey(), uint32(from), uint32(to)) //nolint:gosec // both are of the cluster's range
}
