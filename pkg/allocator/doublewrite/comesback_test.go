package doublewrite_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestANodeThatComesBackTakesTheNewerNumberOnBothSides: its reference and mapping were
// gone for a while, and another node gave the key another number on the side that is read.
func TestANodeThatComesBackTakesTheNewerNumberOnBothSides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key, self, other = text("a"), "10.0.0.1", "10.0.0.9"
		was := wire.IdentityAllocation
		primary, secondary := memory.New(), memory.New()
		defer primary.Close()
		defer secondary.Close()
		both := doublewrite.New(memoryBackend(t, primary, was), memoryBackend(t, secondary, newPaths), doublewrite.Primary, nil, nil)
		var moved []uint64
		a, err := allocator.NewAllocator(both, allocator.WithMin(1000), allocator.WithMax(2000), allocator.WithSyncInterval(time.Minute),
			allocator.WithMoved(func(_ allocator.Key, from, to uint64) { moved = append(moved, from, to) }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		defer func() { stop(); <-ended }()
		if err := a.WaitForInitialSync(ctx); err != nil {
			t.Fatal(err)
		}
		earlier, _, _, err := a.Allocate(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		newer := 1000 + (earlier+1)%1000
		primary.Write(
			kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(was.Reference("a", self))}},
			kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(was.Mapping(earlier))}},
			kvstore.Event{Type: kvstore.EventPut, KeyValue: kvstore.KeyValue{Key: []byte(was.Mapping(newer)), Value: []byte("a")}},
			kvstore.Event{Type: kvstore.EventPut, KeyValue: kvstore.KeyValue{Key: []byte(was.Reference("a", other)), Value: fmt.Append(nil, newer)}},
		)
		time.Sleep(2 * time.Minute) // of the bubble: a round of refreshing
		synctest.Wait()
		for side, at := range map[*memory.Store]wire.AllocationPaths{primary: was, secondary: newPaths} {
			if kv, _, err := side.Get(ctx, at.Reference("a", self)); err != nil || kv == nil || string(kv.Value) != fmt.Sprint(newer) {
				t.Errorf("%s: %+v, %v; want %d", at.Reference("a", self), kv, err, newer)
			}
		}
		if id, err := a.Get(ctx, key); err != nil || id != newer {
			t.Errorf("the key has %d, %v; want %d", id, err, newer)
		}
		if len(moved) != 2 || moved[0] != earlier || moved[1] != newer {
			t.Errorf("moved: %v", moved)
		}
	})
}
