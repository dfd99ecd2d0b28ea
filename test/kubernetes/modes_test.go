package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/crdbackend"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAllocatorsInEveryModeAgree: nodes in each mode except kvstore, and nodes in an adjacent mode, allocate the same
// keys concurrently.
func TestAllocatorsInEveryModeAgree(t *testing.T) {
	s := newStores(t)
	const keys = 25
	for i, beside := range [][]modes.Mode{
		{modes.KVStore, modes.DoubleWriteReadKVStore},
		{modes.DoubleWriteReadKVStore, modes.DoubleWriteReadCRD},
		{modes.DoubleWriteReadCRD, modes.CRD},
		{modes.CRD, modes.CRD},
	} {
		var all []*allocator.Allocator
		running, ctx := errgroup.Group{}, t.Context()
		ctx, stop := context.WithCancel(ctx)
		for n := range 4 {
			a, err := allocator.NewAllocator(s.mode(beside[n%2], n, nil).Backend, allocator.WithMin(1000), allocator.WithMax(9000))
			waittest.Must(t, err)
			all = append(all, a)
			running.Go(func() error { return a.Run(ctx) })
		}
		got := make([][]uint64, len(all))
		var work errgroup.Group
		for n, a := range all {
			got[n] = make([]uint64, 2*keys)
			work.Go(func() error {
				for k := range 2 * keys { // half of them were allocated in the step before
					id, _, _, err := a.Allocate(ctx, key(fmt.Sprint((i*keys + k))))
					if err != nil {
						return err
					}
					got[n][k] = id
				}
				return nil
			})
		}
		if err := work.Wait(); err != nil {
			t.Errorf("%v: %v", beside, err)
		}
		stop()
		_ = running.Wait() // it ends with its context
		for n := range got {
			if !slices.Equal(got[0], got[n]) {
				t.Errorf("%v: the nodes 0 and %d have\n%v\n%v", beside, n, got[0], got[n])
			}
		}
		if ids := slices.Compact(slices.Sorted(slices.Values(got[0]))); len(ids) != 2*keys {
			t.Errorf("%v: %d keys have %d numbers", beside, 2*keys, len(ids))
		}
	}
	differences, _, err := doublewrite.Compare(t.Context(), s.mode(modes.KVStore, 8, nil).Backend, s.mode(modes.CRD, 9, nil).Backend)
	for _, d := range differences {
		if len(d.Primary) > 0 { // identities of only the last nodes are in the Kubernetes API alone
			t.Error(d)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAnIdentityInUseOnOneSideStaysOnBoth: garbage collection in double write mode
// deletes only identities without a use on either side, from both.
func TestAnIdentityInUseOnOneSideStaysOnBoth(t *testing.T) {
	s := newStores(t)
	for i, mode := range []modes.Mode{modes.DoubleWriteReadKVStore, modes.DoubleWriteReadCRD, modes.CRD} {
		ctx, base := t.Context(), uint64(100*(i+1))
		kv, crd := s.mode(modes.KVStore, 1, nil), s.mode(modes.CRD, 2, nil)
		take := func(b *modes.Backend, id uint64, k allocator.Key) {
			t.Helper()
			_, err := b.AllocateID(ctx, id, k, nil)
			if err == nil {
				_, err = b.AcquireReference(ctx, id, k, nil)
			}
			waittest.Must(t, err)
		}
		inKVStore, inKubernetes, unused, published := key(fmt.Sprint("kv", i)), key(fmt.Sprint("crd", i)), key(fmt.Sprint("none", i)), key(fmt.Sprint("ip", i))
		take(kv, base, inKVStore)
		take(crd, base+1, inKubernetes)
		for id, k := range map[uint64]allocator.Key{base + 2: unused, base + 3: published} {
			if _, err := kv.AllocateID(ctx, id, k, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{second(doublewrite.Copy(ctx, kv, crd)), second(doublewrite.Copy(ctx, crd, kv))} {
			waittest.Must(t, err)
		}
		gc := s.mode(mode, 3, &modes.Collect{Kept: func(id uint64) bool { return id == base+3 }})
		var stale allocator.StaleIDs
		rounds := func(n int) {
			t.Helper()
			for range n {
				var err error
				if stale, _, err = gc.RunGC(ctx, nil, stale, base, base+99); err != nil {
					t.Fatal(err)
				}
			}
		}
		const enough = 6 // in the mode crd the copy is deleted after its original
		rounds(enough)
		for _, side := range []allocator.Backend{kv, crd} {
			s.has(side, base, inKVStore)
			s.has(side, base+1, inKubernetes)
			s.has(side, base+2, nil)
			s.has(side, base+3, published)
		}
		waittest.Must(t, errors.Join(kv.Release(ctx, base, inKVStore), crd.Release(ctx, base+1, inKubernetes)))
		rounds(enough)
		for _, side := range []allocator.Backend{kv, crd} {
			s.has(side, base, nil)
			s.has(side, base+1, nil)
		}
	}
}

func second(_ int, err error) error { return err }

// TestReferencesEndAfterTheirProcess: the identities that a dead process used are collected, and also its Lease; those
// of another process stay.
func TestReferencesEndAfterTheirProcess(t *testing.T) {
	s := newStores(t)
	ctx := t.Context()
	dead, alive := s.node(1, time.Second), s.node(2, time.Hour)
	for id, b := range map[uint64]*crdbackend.Backend{7: dead, 8: alive} {
		waittest.Must(t, b.UpdateKey(ctx, id, key(fmt.Sprint(id)), false, nil))
	}
	gc := s.node(3, time.Hour)
	var stale allocator.StaleIDs
	w := &world{Server: s.api}
	w.until(t, "the unused one is gone", func() bool {
		var err error
		if stale, _, err = gc.RunGC(ctx, nil, stale, 1, 99); err != nil {
			t.Fatal(err)
		}
		k, err := gc.GetByID(ctx, 7)
		return k == nil && err == nil
	})
	s.has(gc, 8, key("8"))
	done, err := s.node(4, time.Hour).InUse(ctx, 7, nil) // this node has seen no Lease before
	s.is(done, err, false)
}
