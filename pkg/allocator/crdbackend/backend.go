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

// The labels of what is made here.
const (
	// ManagedBy is on everything, with the value Manager.
	ManagedBy = "app.kubernetes.io/managed-by"
	Manager   = "mesh-agent"

	keyLabel  = "mesh-agent.io/identity-key"  // of a mapping: the hash of its key
	kindLabel = "mesh-agent.io/identity-kind" // of a Lease: kindNode or kindLock
	nodeLabel = "mesh-agent.io/identity-node" // of a Lease of references: whose

	kindNode = "references"
	kindLock = "lock"
)

func identityResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"}
}

func leaseResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

// Config says whose references are held, and where.
type Config struct {
	// Namespace is where the Leases are: the same for all processes of a cluster.
	Namespace string
	// Node is the node's address, which tells its references from those of others.
	Node string
	// Keys is any key of the type that is stored here.
	Keys allocator.Key
	// TTL is how long references outlive a process that ended without giving them up.
	TTL time.Duration
	// Elsewhere tells of a mapping that is about to be collected whether it has to
	// stay nevertheless; an error keeps it for this time. Nil is never.
	Elsewhere func(ctx context.Context, id uint64, key allocator.Key) (bool, error)
	// Log receives what cannot be read and what is deleted; nil is nobody.
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
	held    map[uint64]struct{} // guarded by mu; the numbers in use here
	version int                 // guarded by mu; grows when held changes
	written int                 // guarded by mu; the version that the Lease has
	exists  bool                // guarded by mu; there may be a Lease

	collecting sync.Mutex
	seen       map[string]sighting // guarded by collecting; Leases of references, by name
}

var _ allocator.Backend = (*Backend)(nil)

// New returns a backend. The error says what is missing; nobody is asked yet.
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
		held: make(map[uint64]struct{}), seen: make(map[string]sighting),
	}, nil
}

// nameOf is a node's address as a part of a name and as the value of a label.
func nameOf(node string) string { return "n" + strings.ReplaceAll(node, ":", "-") + "n" }

// Check asks the API server for what is needed. The error says what to do. One that
// does not answer is no error: that may pass.
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

// DeleteAllKeys implements [allocator.Backend]: what was made here, by any node.
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
