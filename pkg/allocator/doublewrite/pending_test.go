package doublewrite_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAPendingReleaseAndAnAllocation: keys are taken again while their releases, which
// have failed before, are made good on the other side. Their references stay.
func TestAPendingReleaseAndAnAllocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		primary, secondary := memory.New(), memory.New()
		defer primary.Close()
		defer secondary.Close()
		b := doublewrite.New(memoryBackend(t, primary, wire.IdentityAllocation), memoryBackend(t, secondary, newPaths), doublewrite.Primary, nil, nil)
		keys := []text{"a", "b", "c"}
		take := func(i int) {
			id := uint64(1000 + i)
			if _, err := b.AllocateID(ctx, id, keys[i], nil); err != nil {
				t.Error(err)
			}
			if held, err := b.AcquireReference(ctx, id, keys[i], nil); err != nil || !held {
				t.Errorf("%s is held: %t, %v", keys[i], held, err)
			}
		}
		for i := range keys {
			take(i)
		}
		secondary.SetFault(func(_ context.Context, op, _ string) error {
			if op == "delete" {
				return errors.New("away")
			}
			return nil
		})
		for i := range 2 {
			if err := b.Release(ctx, uint64(1000+i), keys[i]); err != nil {
				t.Fatal(err)
			}
		}
		goOn := make(chan struct{}) // the first release of the next try waits
		secondary.SetFault(func(_ context.Context, op, _ string) error {
			if op == "delete" {
				<-goOn
			}
			return nil
		})
		var all sync.WaitGroup
		all.Go(func() {
			if err := b.UpdateKey(ctx, 1002, keys[2], false, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for i := range 2 {
			all.Go(func() { take(i) })
		}
		synctest.Wait()
		close(goOn)
		all.Wait()
		for i, key := range keys {
			ref := newPaths.Reference(key.GetKey(), "10.0.0.1")
			if kv, _, err := secondary.Get(ctx, ref); err != nil || kv == nil {
				t.Errorf("%s is in use, and its reference to %d on the other side is gone: %v", key, 1000+i, err)
			}
		}
	})
}

func memoryBackend(t *testing.T, m *memory.Store, paths wire.AllocationPaths) allocator.Backend {
	t.Helper()
	b, err := kvbackend.New(m, kvbackend.Config{Paths: paths, Node: "10.0.0.1", Keys: text("")})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
