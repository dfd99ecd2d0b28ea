package allocator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errAway = errors.New("the store is away")

func TestAllocate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		b1, b2 := s.backend("n1"), s.backend("n2")
		a1, a2 := running(t, b1, WithMin(10), WithMax(10)), running(t, b2, WithMin(10), WithMax(10))
		type result struct {
			id              uint64
			isNew, firstUse bool
		}
		for _, step := range []struct {
			what string
			by   *Allocator
			want result
		}{
			{"a new key", a1, result{10, true, true}},
			{"one in use here", a1, result{10, false, false}},
			{"one in use on another node", a2, result{10, false, true}},
		} {
			id, isNew, firstUse, err := step.by.Allocate(t.Context(), textKey("k"))
			if got := (result{id, isNew, firstUse}); err != nil || got != step.want {
				t.Errorf("%s: got %v, %v, want %v", step.what, got, err, step.want)
			}
		}
		if b1.count("lock") != 1 || b1.count("acquire") != 1 {
			t.Errorf("a key in use cost operations: %v", b1.counts)
		}
		wantContents(t, s, "10=k k/n1=10 k/n2=10")
		if mustRelease(t, a1, "k") {
			t.Error("the first release of two was the last use")
		}
		wantContents(t, s, "10=k k/n1=10 k/n2=10")
		if !mustRelease(t, a1, "k") {
			t.Error("the second release of two was not the last use")
		}
		wantContents(t, s, "10=k k/n2=10")
		if _, err := a1.Release(t.Context(), textKey("k")); !errors.Is(err, ErrIdentityNonExistent) {
			t.Errorf("releasing once too often: %v", err)
		}
		mustRelease(t, a2, "k")
		wantContents(t, s, "10=k")
		if id, isNew, firstUse, err := a2.Allocate(t.Context(), textKey("k")); id != 10 || isNew || !firstUse || err != nil {
			t.Errorf("a key that comes back: got %d, %v, %v, %v", id, isNew, firstUse, err)
		}
		wantContents(t, s, "10=k k/n2=10")
	})
}

// TestAllocateWaitsForList: nothing is allocated before the first list. Waiting ends with the caller's context, the
// timeout or the allocator.
func TestAllocateWaitsForList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() { s.set(7, "k") })
		b := s.backend("n")
		release := make(chan struct{})
		b.setFault(holdOn("list", release))
		a, stop := started(t, b, WithListTimeout(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, _, err := a.Allocate(ctx, textKey("k")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		if err := a.WaitForInitialSync(t.Context()); err == nil || time.Since(start) != time.Minute || !strings.Contains(err.Error(), "1m0s; the store says: in memory") {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
		if b.count("lock") != 0 {
			t.Error("a lock was taken before the list was complete")
		}
		close(release)
		if id := mustAllocate(t, a, "k"); id != 7 {
			t.Errorf("got %d", id)
		}
		stop()
		if _, _, _, err := a.Allocate(t.Context(), textKey("other")); !errors.Is(err, ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
		if err := a.Run(t.Context()); err == nil {
			t.Error("it ran twice")
		}
	})
}

// TestAllocateOnce: concurrent calls for one key share one allocation.
func TestAllocateOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		b := s.backend("n")
		b.setFault(func(context.Context, string, bool) error {
			<-time.After(time.Second)
			return nil
		})
		reg := prometheus.NewPedanticRegistry()
		a := running(t, b, WithMetrics(NewMetrics(reg)))
		const calls = 50
		ids, news := make(map[uint64]int), 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				id, isNew, firstUse, err := a.Allocate(t.Context(), textKey("k"))
				mu.Lock()
				defer mu.Unlock()
				if ids[id]++; isNew && firstUse {
					news++
				}
				if err != nil || isNew != firstUse {
					t.Errorf("got %d, %v, %v, %v", id, isNew, firstUse, err)
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || news != 1 || b.count("lock") != 1 || b.count("allocate") != 1 {
			t.Errorf("got %v, %d new, with %v", ids, news, b.counts)
		}
		for n := range calls {
			if last := mustRelease(t, a, "k"); last != (n == calls-1) {
				t.Errorf("release %d was the last use: %v", n, last)
			}
		}
		err := testutil.GatherAndCompare(reg, strings.NewReader(`# HELP mesh_agent_allocator_allocations_total Allocations by outcome: used on this node already, known, new, or failed.
# TYPE mesh_agent_allocator_allocations_total counter
mesh_agent_allocator_allocations_total{outcome="failed"} 0
mesh_agent_allocator_allocations_total{outcome="known"} 0
mesh_agent_allocator_allocations_total{outcome="new"} 1
mesh_agent_allocator_allocations_total{outcome="used"} 49
# HELP mesh_agent_allocator_jobs_total Work on mappings and node references besides allocations, by kind and outcome.
# TYPE mesh_agent_allocator_jobs_total counter
mesh_agent_allocator_jobs_total{kind="drop",outcome="success"} 1
`), "mesh_agent_allocator_allocations_total", "mesh_agent_allocator_jobs_total")
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAllocateGivesUp: after the last attempt the error contains the number of attempts and the last error. The waiting
// callers get it too.
func TestAllocateGivesUp(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		b.setFault(failOn("allocate", false, errAway))
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, _, _, err := a.Allocate(t.Context(), textKey("k"))
				if !errors.Is(err, errAway) || !strings.Contains(err.Error(), "allocating an ID for k: all 16 attempts failed, the last one: the store is away") {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); b.count("lock") != 16 || took < 40*time.Second || took > 81*time.Second {
			t.Errorf("%d attempts in %s", b.count("lock"), took)
		}
		if n := a.core.pool.free; n != 3 || len(a.core.uses) != 0 || len(a.turns) != 0 {
			t.Errorf("%d of 3 IDs are available, %d keys in use", n, len(a.core.uses))
		}
		wantContents(t, s, "")
	}, WithMax(3))
}

// TestAllocateCancelled: a cancelled caller returns at once, in any blocked call, and holds nothing. Another caller
// that waits for the key takes over.
func TestAllocateCancelled(t *testing.T) {
	for _, op := range []string{"lock", "get", "allocate", "acquire"} {
		t.Run(op, func(t *testing.T) {
			onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
				b.setFault(blockOn(op))
				ctx, cancel := context.WithCancel(t.Context())
				first, second := make(chan error, 1), make(chan uint64, 1)
				go func() {
					_, _, _, err := a.Allocate(ctx, textKey("k"))
					first <- err
				}()
				synctest.Wait()
				go func() {
					id, _, _, err := a.Allocate(context.Background(), textKey("k"))
					if err != nil {
						t.Error(err)
					}
					second <- id
				}()
				synctest.Wait()
				b.setFault(nil)
				start := time.Now()
				cancel()
				if err := <-first; !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
					t.Errorf("got %v after %s", err, time.Since(start))
				}
				if id := <-second; id == NoID || mustAllocate(t, a, "k") != id {
					t.Errorf("the other one got %d", id)
				}
				mustRelease(t, a, "k")
				mustRelease(t, a, "k")
				synctest.Wait()
				if n := a.core.pool.free; n != 2 || len(a.core.uses) != 0 {
					t.Errorf("%d of 3 IDs are available, %d keys in use", n, len(a.core.uses))
				}
				if strings.Contains(s.contents(), "/") {
					t.Errorf("a reference is left: %s", s.contents())
				}
			}, WithMax(3))
		})
	}
}

// TestAllocateCancelledAlone: a caller that gave up leaves nothing in the store, not even a reference that was written
// but whose response was lost.
func TestAllocateCancelledAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() { s.set(2, "k") })
		b := s.backend("n")
		ctx, cancel := context.WithCancel(t.Context())
		b.setFault(func(_ context.Context, op string, after bool) error {
			if op == "acquire" && after {
				cancel()
				return ctx.Err()
			}
			return nil
		})
		a := running(t, b, WithMax(3))
		if _, _, _, err := a.Allocate(ctx, textKey("k")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wantContents(t, s, "2=k")
		if len(a.core.uses) != 0 {
			t.Errorf("%d keys in use", len(a.core.uses))
		}
	})
}
