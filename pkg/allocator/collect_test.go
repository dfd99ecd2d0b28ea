package allocator

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"golang.org/x/time/rate"
)

// TestGC: the range and the results of each round are passed through.
func TestGC(t *testing.T) {
	t.Parallel()
	b := newMemoryStore().backend("n")
	a, err := NewAllocatorForGC(b, WithMin(5), WithMax(9))
	must(t, err)
	stale, stats, err := a.RunGC(t.Context(), rate.NewLimiter(1, 1), StaleIDs{5: 7})
	if err != nil || !maps.Equal(stale, StaleIDs{5: 8, 9: 0}) || stats != (GCStats{Alive: 3, Deleted: 4}) {
		t.Errorf("got %v, %v, %v", stale, stats, err)
	}
	locks, err := a.RunLocksGC(t.Context(), StaleLocks{"path": {Revision: 3}})
	if err != nil || locks["path"].Revision != 4 {
		t.Errorf("got %v, %v", locks, err)
	}
	if err := a.Run(t.Context()); err == nil {
		t.Error("it runs")
	}
	if _, _, _, err := a.Allocate(t.Context(), textKey("k")); err == nil {
		t.Error("it allocates")
	}
	without, err := NewAllocator(b, WithoutGC())
	must(t, err)
	if _, _, err := without.RunGC(t.Context(), nil, nil); err == nil {
		t.Error("it collects")
	}
	if _, err := without.RunLocksGC(t.Context(), nil); err == nil {
		t.Error("it collects locks")
	}
	b.store.behind(func() {
		b.store.set(4, "below")
		b.store.set(6, "k")
	})
	if ids, err := a.ListIDs(t.Context()); err != nil || !slices.Equal(ids, []uint64{4, 6}) {
		t.Errorf("got %d, %v", ids, err)
	}
	if deleted, err := a.DeleteID(t.Context(), 6); !deleted || err != nil {
		t.Errorf("deleted %t, %v", deleted, err)
	}
	if deleted, err := a.DeleteID(t.Context(), 4); deleted || err == nil {
		t.Errorf("one outside of the range is deleted: %t, %v", deleted, err)
	}
	if _, err := without.DeleteID(t.Context(), 6); err == nil {
		t.Error("it deletes")
	}
	b.store.behind(func() { b.store.set(5, "k") })
	if err := a.DeleteAllKeys(t.Context()); err != nil || b.store.contents() != "" {
		t.Errorf("left %q, %v", b.store.contents(), err)
	}
}

// TestAnIDInUseHereIsNotDeleted: an ID that this node uses is not deleted, even when its reference is missing in the
// store.
func TestAnIDInUseHereIsNotDeleted(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		id := mustAllocate(t, a, "k")
		s.behind(func() { clear(s.refs) })
		if deleted, err := a.DeleteID(t.Context(), id); deleted || !errors.Is(err, ErrIDInUse) {
			t.Errorf("deleted %t, %v", deleted, err)
		}
		mustRelease(t, a, "k")
		if deleted, err := a.DeleteID(t.Context(), id); !deleted || err != nil {
			t.Errorf("deleted %t, %v", deleted, err)
		}
	}, WithMax(9))
}
