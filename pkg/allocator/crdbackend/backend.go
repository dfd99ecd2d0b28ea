package crdbackend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/internal/mistakes"
)

// The labels of the objects that this package creates.
const (
	// ManagedBy is on every object, with the value Manager.
	ManagedBy = "app.kubernetes.io/managed-by"
	Manager   = "mesh-agent"

	keyLabel  = "mesh-agent.io/identity-key"  // of a mapping: the hash of its key
	kindLabel = "mesh-agent.io/identity-kind" // of a Lease: kindNode or kindLock
	nodeLabel = "mesh-agent.io/identity-node" // of a Lease of references: its node

	kindNode = "references"
	kindLock = "lock"
)

func identityResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"}
}

func leaseResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

// Config describes where a Backend keeps its entries, and for which node.
type Config struct {
	// Namespace is the namespace of the Leases: the same for all processes of a cluster.
	Namespace string
	// Node is the node's address. It distinguishes the node's references from those of others.
	Node string
	// Keys is any key of the type that is stored here.
	Keys allocator.Key
	// TTL is how long references outlive a process that ended without releasing them.
	TTL time.Duration
	// Elsewhere is called for a mapping that is about to be collected, and reports whether the mapping has to stay
	// nevertheless. An error keeps it in this round. Nil means that no mapping has to stay.
	Elsewhere func(ctx context.Context, id uint64, key allocator.Key) (bool, error)
	// Log receives the entries that cannot be read and those that are deleted; it may be nil.
	Log *slog.Logger
}

// Backend is an [allocator.Backend] in the Kubernetes API.
type Backend struct {
	Config
	identities, leases dynamic.ResourceInterface
	name               string // of this process's Lease, and in locks

	writing chan struct{} // held while that Lease is written
	locks   chan struct{} // has an element for each lock that is held, or waited for

	mu      sync.Mutex
	held    map[uint64]struct{} // guarded by mu; the IDs in use here
	version int                 // guarded by mu; grows when held changes, and for each renewal
	written int                 // guarded by mu; the version that the Lease has
	exists  bool                // guarded by mu; there may be a Lease

	collecting sync.Mutex
	seen       map[string]observation // guarded by collecting; Leases of references, by name
}

var _ allocator.Backend = (*Backend)(nil)

// New returns a backend. The error names the missing settings. New sends no requests.
func New(client dynamic.Interface, c Config) (*Backend, error) {
	err := errors.Join(
		mistakes.If(client == nil, "there is no Kubernetes API"),
		mistakes.If(c.Namespace == "", "the namespace of the Leases is not given"),
		mistakes.If(c.Node == "", "the node's address is needed, which names its references"),
		mistakes.If(c.Keys == nil, "the type of the keys is not given"),
		mistakes.If(c.TTL < time.Second, "references that outlive their owner for %s: at least a second is needed", c.TTL),
	)
	if err != nil {
		return nil, fmt.Errorf("allocator in the Kubernetes API: %w", err)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Backend{
		Config: c, identities: client.Resource(identityResource()), leases: client.Resource(leaseResource()).Namespace(c.Namespace),
		name: "mesh-agent-node-" + nameOf(c.Node) + "-" + strings.ToLower(rand.Text()[:8]), writing: make(chan struct{}, 1), locks: make(chan struct{}, locksAtOnce),
		held: make(map[uint64]struct{}), seen: make(map[string]observation),
	}, nil
}

// nameOf returns a node's address as a part of a name and as the value of a label.
func nameOf(node string) string { return "n" + strings.ReplaceAll(node, ":", "-") + "n" }

// Check checks that the API server has the required resources and allows access to them. The error describes the
// remedy. When the server does not answer, that is no error, because it may be temporary.
func (b *Backend) Check(ctx context.Context) error {
	_, err := b.identities.List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil {
		_, err = b.leases.List(ctx, metav1.ListOptions{Limit: 1})
	}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the Kubernetes API has no CiliumIdentity (cilium.io/v2) to keep identities in: apply deploy/ciliumidentities.yaml: %w", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("this account may not keep identities in the Kubernetes API: apply deploy/identities.yaml: %w", err)
	}
	return ctx.Err()
}

// Status implements [allocator.Backend].
func (b *Backend) Status() string {
	return "CiliumIdentities of the Kubernetes API, with Leases in the namespace " + b.Namespace
}

// DeleteAllKeys implements [allocator.Backend]. It deletes the objects of this package, of all nodes.
func (b *Backend) DeleteAllKeys(ctx context.Context) error {
	ours := metav1.ListOptions{LabelSelector: ManagedBy + "=" + Manager}
	leases := metav1.ListOptions{LabelSelector: ours.LabelSelector + "," + kindLabel}
	err := errors.Join(
		b.leases.DeleteCollection(ctx, metav1.DeleteOptions{}, leases),
		b.identities.DeleteCollection(ctx, metav1.DeleteOptions{}, ours))
	if err != nil {
		return fmt.Errorf("deleting all identities of the Kubernetes API: %w", err)
	}
	return nil
}
