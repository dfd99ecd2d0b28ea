package operate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// adopt is for a migration that goes back a step. In the mode [modes.CRD] an operator
// publishes CiliumIdentities as mappings that end with its lease. In double write mode
// the allocators read and write these mappings themselves, and count on them to stay:
// those that a CiliumIdentity confirms lose their lease. It is tried until it succeeds.
func (o *Operator) adopt(ctx context.Context, lock *kvstore.Lock) error {
	if !o.Allocation.Mode.InKubernetes() || o.Allocation.Mode == modes.CRD {
		return nil
	}
	b, err := o.collector(lock)
	if err != nil {
		return err
	}
	return untilDone(ctx, func() error {
		n, err := o.adoptAll(ctx, b, lock)
		if err == nil && n > 0 {
			o.Log.Info("Published identities belong to the allocators again", "number", n)
		}
		return err
	}, func(err error) {
		o.Log.Warn("Published identities cannot be given to the allocators, trying again", "error", err)
	})
}

func (o *Operator) adoptAll(ctx context.Context, b *collector, lock *kvstore.Lock) (adopted int, err error) {
	var leased []kvstore.KeyValue
	prefix := wire.IdentityAllocation.Mappings()
	_, err = o.Writer.List(ctx, prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			if kv.Lease != 0 {
				leased = append(leased, kv)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, kv := range leased {
		id, err := strconv.ParseUint(string(kv.Key[len(prefix):]), 10, 64)
		if err != nil {
			continue // not a mapping
		}
		key, err := b.Kubernetes.GetByID(ctx, id)
		if err != nil {
			return adopted, err
		}
		if key == nil || key.GetKey() != string(kv.Value) {
			continue
		}
		r, err := o.Writer.Put(ctx, string(kv.Key), kv.Value, kvstore.IfRevision(kv.ModRevision), kvstore.Holding(lock))
		if err != nil {
			return adopted, fmt.Errorf("writing %s: %w", kv.Key, err)
		}
		if r.Done {
			adopted++
		}
	}
	return adopted, nil
}
