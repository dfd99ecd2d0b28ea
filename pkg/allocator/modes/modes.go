// Package modes says where identities are allocated, as an operator chooses it: in
// the kvstore, as CiliumIdentities of the Kubernetes API, or, while they move from
// one to the other, in both. The names are those of Cilium's setting.
//
// Concurrency: a [Backend] is as its parts are.
package modes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/crdbackend"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mode is where identities are allocated. The zero value is [KVStore].
type Mode string

// The modes, in the order of a migration.
const (
	KVStore                Mode = "kvstore"
	DoubleWriteReadKVStore Mode = "doublewrite-readkvstore"
	DoubleWriteReadCRD     Mode = "doublewrite-readcrd"
	CRD                    Mode = "crd"
)

// All are the modes, in the order of a migration.
func All() []Mode { return []Mode{KVStore, DoubleWriteReadKVStore, DoubleWriteReadCRD, CRD} }

// Parse returns the mode of a setting. The error names the possible ones.
func Parse(text string) (Mode, error) {
	if m := Mode(text); slices.Contains(All(), m) {
		return m, nil
	}
	var names []string
	for _, m := range All() {
		names = append(names, string(m))
	}
	return "", fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
}

// InKVStore reports whether the allocators write to the kvstore.
func (m Mode) InKVStore() bool { return m != CRD }

// InKubernetes reports whether the allocators write to the Kubernetes API.
func (m Mode) InKubernetes() bool { return m != KVStore && m != "" }

// Config says where a Backend keeps its entries.
type Config struct {
	Mode Mode
	// Writer writes to the kvstore, where the mode needs it.
	Writer kvstore.Writer
	// Kubernetes is the Kubernetes API, where the mode needs it. Namespace is that of
	// the Leases there, TTL how long references outlive their process.
	Kubernetes dynamic.Interface
	Namespace  string
	TTL        time.Duration
	// Node is the address that tells this node's references from those of others.
	Node string
	// Keys is any key of the type that is stored.
	Keys allocator.Key
	// Collect says how garbage is collected; nil is for who allocates.
	Collect *Collect
	// Log, Metrics and Registerer may be nil.
	Log        *slog.Logger
	Metrics    *allocator.Metrics
	Registerer prometheus.Registerer
}

// Collect says how garbage is collected.
type Collect struct {
	// Lock is what each deletion in the kvstore needs, and Leading what is asked before
	// each one in the Kubernetes API, which knows no lock of a kvstore.
	Lock    *kvstore.Lock
	Leading func(ctx context.Context) error
	// Kept reports whether a number has to stay although nobody refers to it; nil is
	// never. It is asked where the Kubernetes API takes part.
	Kept func(id uint64) bool
}

// Backend is an [allocator.Backend] in a mode, with its sides; nil for one that there is not.
type Backend struct {
	allocator.Backend
	KVStore    *kvbackend.Backend
	Kubernetes *crdbackend.Backend
}

// New returns the backend of a mode. What collects garbage has both sides as soon as the Kubernetes
// API takes part: in the mode [CRD] what is left in the kvstore goes after its CiliumIdentity.
//
// An identity that is used according to one side is collected on neither.
func New(c Config) (*Backend, error) {
	b := &Backend{}
	var err error
	if c.Mode.InKVStore() || c.Collect != nil {
		if b.KVStore, err = c.inKVStore(b); err != nil {
			return nil, err
		}
	}
	if c.Mode.InKubernetes() {
		if b.Kubernetes, err = c.inKubernetes(b); err != nil {
			return nil, err
		}
	}
	switch {
	case b.Kubernetes == nil:
		b.Backend = b.KVStore
	case b.KVStore == nil:
		b.Backend = b.Kubernetes
	default:
		read := doublewrite.Secondary
		if c.Mode == DoubleWriteReadKVStore {
			read = doublewrite.Primary
		}
		b.Backend = doublewrite.New(b.KVStore, b.Kubernetes, read, c.Log, c.Registerer)
	}
	return b, nil
}

func (c Config) inKVStore(b *Backend) (*kvbackend.Backend, error) {
	if c.Writer == nil {
		return nil, fmt.Errorf("identities are allocated in the mode %s, which needs the own cluster's kvstore", c.Mode)
	}
	kv := kvbackend.Config{Paths: wire.IdentityAllocation, Node: c.Node, Keys: c.Keys, Log: c.Log, Metrics: c.Metrics}
	if c.Collect != nil {
		kv.Collecting = c.Collect.Lock
		kv.Elsewhere = func(ctx context.Context, id uint64, key allocator.Key) (bool, error) {
			switch {
			case b.Kubernetes == nil:
				return false, nil
			case c.Collect.kept(id):
				return true, nil
			case c.Mode == CRD:
				// This is its copy for other clusters. One of other labels is left over.
				there, err := b.Kubernetes.GetByID(ctx, id)
				return err != nil || there != nil && key != nil && there.GetKey() == key.GetKey(), err
			}
			return b.Kubernetes.InUse(ctx, id, key)
		}
	}
	return kvbackend.New(c.Writer, kv)
}

func (c Config) inKubernetes(b *Backend) (*crdbackend.Backend, error) {
	if c.Kubernetes == nil {
		return nil, fmt.Errorf("identities are allocated in the mode %s, which needs the Kubernetes API", c.Mode)
	}
	crd := crdbackend.Config{Namespace: c.Namespace, Node: c.Node, Keys: c.Keys, TTL: c.TTL, Log: c.Log}
	if c.Collect != nil {
		crd.Elsewhere = func(ctx context.Context, id uint64, key allocator.Key) (bool, error) {
			if leading := c.Collect.Leading; leading != nil {
				if err := leading(ctx); err != nil {
					return true, err
				}
			}
			if c.Collect.kept(id) {
				return true, nil
			}
			return b.KVStore.InUse(ctx, id, key)
		}
	}
	return crdbackend.New(c.Kubernetes, crd)
}

func (c *Collect) kept(id uint64) bool { return c.Kept != nil && c.Kept(id) }

// Run checks that the Kubernetes API has what is needed, and keeps this process's
// references there alive until ctx ends. Without that API it just waits.
func (b *Backend) Run(ctx context.Context) error {
	if b.Kubernetes == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := b.Kubernetes.Check(ctx); err != nil {
		return err
	}
	return b.Kubernetes.Run(ctx)
}
