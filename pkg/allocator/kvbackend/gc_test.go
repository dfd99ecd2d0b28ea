package kvbackend_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// round runs one round of garbage collection over the IDs from 5 to 20, and returns the IDs it found unused.
func (s *site) round(b *kvbackend.Backend, stale allocator.StaleIDs, wantAlive, wantDeleted int) allocator.StaleIDs {
	s.Helper()
	next, stats, err := b.RunGC(s.Context(), nil, stale, 5, 20)
	must(s, err)
	if stats.Alive != wantAlive || stats.Deleted != wantDeleted {
		s.Errorf("%+v, want %d alive and %d deleted", stats, wantAlive, wantDeleted)
	}
	return next
}

func ids(stale allocator.StaleIDs) []uint64 { return slices.Sorted(maps.Keys(stale)) }

func TestWhatIsUnusedInTwoRoundsIsDeleted(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(
			base+"/id/4", "k8s:below=1;", base+"/id/21", "k8s:above=1;", // out of range
			base+"/id/7", "k8s:a=1;", // unused
			base+"/id/8", "k8s:b=1;", base+"/value/k8s:b=1;/10.0.0.9", "8", // used
			base+"/id/9", "k8s:c=1;", base+"/value/k8s:c=1;/10.0.0.9", "8", // another number is used
			base+"/id/10", "k8s:d=1;", base+"/value/k8s:d=1;/k8s:x=1;/10.0.0.9", "10", // the reference is a longer key's
			base+"/id/11", "k8s:u=http://x;", base+"/value/k8s:u=http:/x;/10.0.0.9", "11", // used
			base+"/id/12", "bad", // unused, and its key cannot be read
			base+"/id/x", "k8s:x=1;", base+"/value/k8s:e=1;/10.0.0.9", "x", // invalid IDs
		)
		stale := s.round(b, nil, 6, 0)
		if diff := cmp.Diff([]uint64{7, 9, 10, 12}, ids(stale)); diff != "" {
			s.Error(diff)
		}
		s.put(base+"/value/k8s:c=1;/10.0.0.9", "9")                 // now used
		s.put(base+"/id/10", "k8s:d=2;")                            // now another key
		s.put(base+"/id/13", "k8s:f=1;", base+"/id/14", "k8s:g=1;") // new ones, unused
		s.delete(base + "/id/14")
		stale = s.round(b, stale, 5, 2)
		if diff := cmp.Diff([]uint64{10, 13}, ids(stale)); diff != "" {
			s.Error(diff)
		}
		stale = s.round(b, stale, 3, 2)
		if len(stale) != 0 {
			s.Errorf("%v are stale", stale)
		}
		s.want(
			"id/4", "k8s:below=1;", "id/21", "k8s:above=1;", "id/x", "k8s:x=1;",
			"id/8", "k8s:b=1;", "value/k8s:b=1;/10.0.0.9", "8",
			"id/9", "k8s:c=1;", "value/k8s:c=1;/10.0.0.9", "9",
			"value/k8s:d=1;/k8s:x=1;/10.0.0.9", "10",
			"id/11", "k8s:u=http://x;", "value/k8s:u=http:/x;/10.0.0.9", "11",
			"value/k8s:e=1;/10.0.0.9", "x",
		)
	})
}

// TestCollectionAndAllocationExcludeEachOther: collection waits while the lock of the key is held; a reference that is
// acquired under the lock saves the mapping.
func TestCollectionAndAllocationExcludeEachOther(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(base+"/id/7", "k8s:a=1;")
		stale := s.round(b, nil, 1, 0)
		lock, err := b.Lock(s.Context(), keyA)
		must(s, err)
		ended := make(chan allocator.GCStats, 1)
		go func() {
			_, stats, err := b.RunGC(s.Context(), nil, stale, 5, 20)
			if err != nil {
				s.Error(err)
			}
			ended <- stats
		}()
		done, err := b.AcquireReference(s.Context(), 7, keyA, lock)
		s.good(done, err, true)
		var stats allocator.GCStats
		select {
		case stats = <-ended: // it found the reference, and needed no lock
			lock.Unlock()
		default:
			lock.Unlock()
			stats = <-ended
		}
		if stats != (allocator.GCStats{Alive: 1}) { // nothing was deleted, in either order
			s.Errorf("%+v", stats)
		}
		s.want("id/7", "k8s:a=1;", "value/k8s:a=1;/10.0.0.1", "7")
	})
}

// TestWhatIsNeededElsewhereIsNotCollected: an ID that is needed elsewhere is not collected, nor one for which Elsewhere
// fails.
func TestWhatIsNeededElsewhereIsNotCollected(t *testing.T) {
	onBoth(t, func(s *site) {
		s.put(base+"/id/7", "k8s:a=1;", base+"/id/8", "k8s:b=1;", base+"/id/9", "k8s:c=1;", base+"/id/10", "bad")
		unknown := errors.New("nobody answers")
		b := s.with(kvbackend.Config{Elsewhere: func(_ context.Context, id uint64, key allocator.Key) (bool, error) {
			switch id {
			case 8:
				return false, unknown
			case 10:
				return key == nil, nil
			}
			return key == keyA, nil
		}})
		stale := s.round(b, nil, 4, 0)
		stale, stats, err := b.RunGC(s.Context(), nil, stale, 5, 20)
		if !errors.Is(err, unknown) || stats != (allocator.GCStats{Alive: 3, Deleted: 1}) {
			s.Errorf("%+v, %v", stats, err)
		}
		if diff := cmp.Diff([]uint64{8}, ids(stale)); diff != "" { // the others are unused for the first time again
			s.Error(diff)
		}
		s.want("id/7", "k8s:a=1;", "id/8", "k8s:b=1;", "id/10", "bad")
		for id, used := range map[uint64]bool{7: true, 8: false} {
			if used {
				done, err := b.AcquireReference(s.Context(), id, keyA, nil)
				s.good(done, err, true)
			}
			is, err := b.InUse(s.Context(), id, keyA)
			s.good(is, err, used)
		}
	})
}

func TestDeletionsAreLimited(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(base+"/id/7", "k8s:a=1;", base+"/id/8", "k8s:b=1;")
		stale := s.round(b, nil, 2, 0)
		ctx, cancel := context.WithTimeout(s.Context(), 30*time.Minute) // less than the limiter asks for
		defer cancel()
		again, stats, err := b.RunGC(ctx, rate.NewLimiter(rate.Every(time.Hour), 1), stale, 5, 20)
		if err == nil || stats.Deleted != 1 {
			s.Errorf("%+v, %v; want one deleted and an error", stats, err)
		}
		if diff := cmp.Diff(stale, again); diff != "" {
			s.Error(diff)
		}
	})
}

func TestALockThatIsSeenTwiceIsStale(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		locks := base + "/locks/"
		s.put(locks+"k8s:a=1;/1", "", locks+"k8s:a=1;/0", "", locks+"id/7/2", "", locks+"k8s:b=1;/3", "")
		held := func(stale allocator.StaleLocks) (keys []string) {
			for _, h := range stale {
				keys = append(keys, strings.TrimPrefix(h.Key, locks))
			}
			slices.Sort(keys)
			return keys
		}
		round := func(stale allocator.StaleLocks, want ...string) allocator.StaleLocks {
			s.Helper()
			next, err := b.RunLocksGC(s.Context(), stale)
			must(s, err)
			if diff := cmp.Diff(want, held(next)); diff != "" {
				s.Error(diff)
			}
			return next
		}
		stale := round(nil, "id/7/2", "k8s:a=1;/1", "k8s:b=1;/3")
		s.delete(locks + "k8s:b=1;/3")
		s.put(locks+"k8s:b=1;/3", "") // the same holder, again
		stale = round(stale, "k8s:b=1;/3")
		s.want("locks/k8s:a=1;/0", "", "locks/k8s:b=1;/3", "")
		round(stale, "k8s:a=1;/0")
	})
}

func TestWhatCannotBeCollectedIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := memory.New()
	s := &site{t, m}
	b := s.backend("10.0.0.1")
	s.put(base+"/id/7", "k8s:a=1;", base+"/id/8", "k8s:b=1;", base+"/locks/x/1", "")
	stale := s.round(b, nil, 2, 0)
	locks, err := b.RunLocksGC(t.Context(), nil)
	must(t, err)
	broken := errors.New("broken")
	m.SetFault(func(_ context.Context, op, key string) error {
		if op == "delete" && (key == base+"/id/7" || key == base+"/locks/x/1") {
			return broken
		}
		return nil
	})
	stale, stats, err := b.RunGC(t.Context(), nil, stale, 5, 20)
	if !errors.Is(err, broken) || stats.Deleted != 1 || !slices.Equal(ids(stale), []uint64{7}) {
		t.Errorf("%v, %+v, %v", stale, stats, err)
	}
	locks, err = b.RunLocksGC(t.Context(), locks)
	if !errors.Is(err, broken) || len(locks) != 1 {
		t.Errorf("%v, %v", locks, err)
	}
	m.SetFault(nil)
	s.round(b, stale, 0, 1)
	if locks, err = b.RunLocksGC(t.Context(), locks); err != nil || len(locks) != 0 {
		t.Errorf("%v, %v", locks, err)
	}
	s.want()
}

// TestTheLockOfWhoCollects: with the collector's lock, unused IDs are deleted. After the lock was lost nothing is
// deleted, even if it was found unused before.
func TestTheLockOfWhoCollects(t *testing.T) {
	onBoth(t, func(s *site) {
		lead, err := s.client.Lock(s.Context(), "lead")
		must(s, err)
		b := s.with(kvbackend.Config{Collecting: lead})
		s.put(base+"/id/7", "k8s:a=1;", base+"/locks/x/1", "")
		stale := s.round(b, nil, 1, 0)
		locks, err := b.RunLocksGC(s.Context(), nil)
		must(s, err)
		s.put(base+"/id/8", "k8s:b=1;", base+"/locks/y/1", "")
		stale = s.round(b, stale, 1, 1)
		if locks, err = b.RunLocksGC(s.Context(), locks); err != nil {
			s.Error(err)
		}
		s.want("id/8", "k8s:b=1;", "locks/y/1", "")
		lead.Unlock()
		if _, stats, err := b.RunGC(s.Context(), nil, stale, 5, 20); !errors.Is(err, kvstore.ErrLockLeaseExpired) || stats.Deleted > 0 {
			s.Errorf("%+v, %v", stats, err)
		}
		if _, err := b.RunLocksGC(s.Context(), locks); !errors.Is(err, kvstore.ErrLockLeaseExpired) {
			s.Errorf("locks: %v", err)
		}
		s.want("id/8", "k8s:b=1;", "locks/y/1", "")
	})
}
