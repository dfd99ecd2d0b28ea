package doublewrite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// onSides returns a backend that writes to two kvstores in memory.
func onSides(t *testing.T, read doublewrite.Side) (b *doublewrite.Backend, primary, secondary *memory.Store) {
	t.Helper()
	primary, secondary = memory.New(), memory.New()
	t.Cleanup(primary.Close)
	t.Cleanup(secondary.Close)
	return doublewrite.New(memoryBackend(t, primary, wire.IdentityAllocation), memoryBackend(t, secondary, newPaths), read, nil, nil), primary, secondary
}

func memoryBackend(t *testing.T, m *memory.Store, paths wire.AllocationPaths) allocator.Backend {
	t.Helper()
	b, err := kvbackend.New(m, kvbackend.Config{Paths: paths, Node: "10.0.0.1", Keys: text("")})
	must(t, err)
	return b
}

// TestIDsOfBothSides: the IDs of the side that is read are listed. An ID is deleted on both sides, except on a side
// where it is used.
func TestIDsOfBothSides(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, primary, secondary := onSides(t, doublewrite.Primary)
	unused, held, there := text("unused"), text("held"), text("there")
	for id, key := range map[uint64]text{1: unused, 2: held, 3: there} {
		if created, err := b.AllocateID(ctx, id, key, nil); !created || err != nil {
			t.Fatal(created, err)
		}
	}
	primary.Set(wire.IdentityAllocation.Reference(held.GetKey(), "10.0.0.9"), "2")
	secondary.Set(newPaths.Reference(there.GetKey(), "10.0.0.9"), "3")
	for id, want := range map[uint64]bool{1: true, 2: false, 3: true, 4: false} {
		deleted, err := b.DeleteID(ctx, id)
		if deleted != want || errors.Is(err, allocator.ErrIDInUse) != (id == 2) || err != nil && id != 2 {
			t.Errorf("%d is deleted: %t, %v", id, deleted, err)
		}
	}
	if ids, err := b.ListIDs(ctx); err != nil || !slices.Equal(ids, []uint64{2}) {
		t.Errorf("the primary has %d, %v", ids, err)
	}
	ids, err := memoryBackend(t, secondary, newPaths).ListIDs(ctx)
	if err != nil || !slices.Equal(ids, []uint64{2, 3}) {
		t.Errorf("the secondary has %d, %v", ids, err)
	}

	secondary.SetFault(func(context.Context, string, string) error { return errors.New("away") })
	primary.Set(wire.IdentityAllocation.Mapping(5), "fifth")
	if deleted, err := b.DeleteID(ctx, 5); !deleted || err != nil {
		t.Errorf("without the other side: %t, %v", deleted, err)
	}
}

// TestAKeyOfTheOtherSideKeepsItsNumber: a key that is in use only on the side that is not read is found under the key's
// lock, unless its number belongs to another key on the side that is read.
func TestAKeyOfTheOtherSideKeepsItsNumber(t *testing.T) {
	t.Parallel()
	for _, read := range []doublewrite.Side{doublewrite.Primary, doublewrite.Secondary} {
		b, primary, secondary := onSides(t, read)
		sides := []allocator.Backend{memoryBackend(t, primary, wire.IdentityAllocation), memoryBackend(t, secondary, newPaths)}
		reading, other := sides[read], sides[1-read]
		for id, key := range map[uint64]text{7: "a", 8: "b"} {
			must(t, other.UpdateKey(t.Context(), id, key, false, nil))
		}
		if _, err := reading.AllocateID(t.Context(), 8, text("c"), nil); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[text]uint64{"a": 7, "b": allocator.NoID, "d": allocator.NoID} {
			lock, err := b.Lock(t.Context(), key)
			must(t, err)
			if id, err := b.Get(t.Context(), key, lock); err != nil || id != want {
				t.Errorf("reading the %s side: %s has %d, %v; want %d", read, key, id, err, want)
			}
			lock.Unlock()
			if id, err := b.Get(t.Context(), key, nil); err != nil || id != allocator.NoID {
				t.Errorf("reading the %s side without a lock: %s has %d, %v", read, key, id, err)
			}
		}
	}
}

// TestAPendingReleaseAndAnAllocation: keys are allocated again while their releases, which have failed before, are
// retried on the other side. Their references stay.
func TestAPendingReleaseAndAnAllocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		b, _, secondary := onSides(t, doublewrite.Primary)
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
			must(t, b.Release(ctx, uint64(1000+i), keys[i]))
		}
		goOn := make(chan struct{}) // the first release of the next attempt waits
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

// TestANodeThatComesBackTakesTheNewerNumberOnBothSides: its reference and mapping were deleted for a while, and another
// node gave the key another number on the side that is read.
func TestANodeThatComesBackTakesTheNewerNumberOnBothSides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key, self, other = text("a"), "10.0.0.1", "10.0.0.9"
		was := wire.IdentityAllocation
		both, primary, secondary := onSides(t, doublewrite.Primary)
		var moved []uint64
		a, err := allocator.NewAllocator(both, allocator.WithMin(1000), allocator.WithMax(2000), allocator.WithSyncInterval(time.Minute),
			allocator.WithMoved(func(_ allocator.Key, from, to uint64) { moved = append(moved, from, to) }))
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		defer func() { stop(); <-ended }()
		must(t, a.WaitForInitialSync(ctx))
		earlier, _, _, err := a.Allocate(ctx, key)
		must(t, err)
		newer := 1000 + (earlier+1)%1000
		primary.Write(
			kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(was.Reference("a", self))}},
			kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(was.Mapping(earlier))}},
			kvstore.Event{Type: kvstore.EventPut, KeyValue: kvstore.KeyValue{Key: []byte(was.Mapping(newer)), Value: []byte("a")}},
			kvstore.Event{Type: kvstore.EventPut, KeyValue: kvstore.KeyValue{Key: []byte(was.Reference("a", other)), Value: fmt.Append(nil, newer)}},
		)
		<-time.After(2 * time.Minute) // one refresh round
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
