// Package modes makes the backend for a mode, the administrator's choice of where identities are allocated: in the
// kvstore, as CiliumIdentities of the Kubernetes API, or, during a migration from one to the other, in both. The
// names of the modes are those of Cilium's setting.
//
// Concurrency: as for the backends that a [Backend] consists of.
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

// Parse returns the mode of a setting. The error names the possible modes.
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

// Config describes where a Backend keeps its entries.
type Config struct {
	Mode Mode
	// Writer writes to the kvstore, where the mode needs it.
	Writer kvstore.Writer
	// Kubernetes is the Kubernetes API, where the mode needs it. Namespace is the namespace of the Leases there. TTL
	// is how long references outlive their process.
	Kubernetes dynamic.Interface
	Namespace  string
	TTL        time.Duration
	// Node is the node's address. It distinguishes this node's references from those of others.
	Node string
	// Keys is any key of the stored type.
	Keys allocator.Key
	// Collect configures garbage collection; nil for an allocator.
	Collect *Collect
	// Log, Metrics and Registerer may be nil.
	Log        *slog.Logger
	Metrics    *allocator.Metrics
	Registerer prometheus.Registerer
}

// Collect configures garbage collection.
type Collect struct {
	// Lock is a lock that each deletion in the kvstore needs. Leading is called before each deletion in the
	// Kubernetes API, which cannot check a lock of a kvstore; an error prevents the deletion.
	Lock    *kvstore.Lock
	Leading func(ctx context.Context) error
	// Kept reports whether an ID has to stay although no node refers to it; nil for never. It is called where the
	// mode uses the Kubernetes API.
	Kept func(id uint64) bool
}

// Backend is an [allocator.Backend] for a mode, with its sides. A side that the mode does not use is nil.
type Backend struct {
	allocator.Backend
	KVStore    *kvbackend.Backend
	Kubernetes *crdbackend.Backend
}

// New returns the backend of a mode. With Collect it has both sides as soon as the mode uses the Kubernetes API: in
// the mode [CRD], a mapping that is left in the kvstore is deleted after its CiliumIdentity.
//
// An identity that is in use on one side is collected on neither.
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
				// The mapping is the copy of the CiliumIdentity for other clusters. A mapping with other labels is
				// left over.
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

// Run checks that the Kubernetes API has the required resources and permissions. It keeps this process's references
// there alive until ctx ends. Without that API it only waits.
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
