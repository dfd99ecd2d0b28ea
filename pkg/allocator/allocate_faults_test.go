package allocator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// TestAllocateTaken: IDs that others have taken, and that the cache does not show yet, are tried and skipped. When
// every ID is taken, the allocation fails.
func TestAllocateTaken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		b := s.backend("n")
		b.blind = true
		silent := make(chan struct{})
		b.setFault(holdOn("watch", silent))
		a := running(t, b, WithMax(3))
		synctest.Wait()
		s.behind(func() {
			s.set(1, "x")
			s.set(3, "y")
		})
		if id := mustAllocate(t, a, "k"); id != 2 {
			t.Errorf("got %d", id)
		}
		close(silent)
		synctest.Wait()
		_, _, _, err := a.Allocate(t.Context(), textKey("one too many"))
		if !errors.Is(err, ErrNoFreeID) || !strings.HasSuffix(err.Error(), "every ID of the range is taken: 1 to 3") {
			t.Errorf("got %v", err)
		}
		wantContents(t, s, "1=x 2=k 3=y k/n=2")
	})
}

// TestAllocateLockLost: an attempt that loses its lock is repeated.
func TestAllocateLockLost(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		for _, op := range []string{"get", "allocate", "acquire"} {
			lost := false
			b.setFault(func(_ context.Context, o string, after bool) error {
				if o == op && !after && !lost {
					lost = true
					s.mu.Lock()
					holder := s.locks[op].holder
					s.mu.Unlock()
					holder.Unlock()
				}
				return nil
			})
			before := b.count("lock")
			mustAllocate(t, a, op)
			if n := b.count("lock") - before; n != 2 {
				t.Errorf("the lock was lost before %s: %d attempts", op, n)
			}
		}
		s.rightly(t)
	})
}

// TestAllocateVanished: a mapping that is in the cache, but was deleted since without an event, is created again.
func TestAllocateVanished(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, references := range map[string]map[string]uint64{
			"2=k k/n=2":              {},
			"2=k k/n=2 k/somebody=2": {"somebody": 2},
		} {
			s := newMemoryStore()
			s.behind(func() { s.set(2, "k") })
			b := s.backend("n")
			b.blind = true
			b.setFault(blockOn("watch"))
			a := running(t, b, WithMax(100))
			synctest.Wait()
			s.behind(func() {
				s.set(2, "")
				s.refs["k"] = references
			})
			mustAllocate(t, a, "k")
			wantContents(t, s, name)
		}
	})
}

// TestAllocateAfterFailure: for each call that may fail, before or after it took effect, the next attempt ends with one
// mapping and one reference.
func TestAllocateAfterFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, op := range []string{"lock", "get", "allocate", "acquire"} {
			for _, after := range []bool{false, true} {
				for _, fails := range []error{errAway, kvstore.ErrLockLeaseExpired} {
					s := newMemoryStore()
					b := s.backend("n")
					failed := false
					b.setFault(func(_ context.Context, o string, aft bool) error {
						if o == op && aft == after && !failed {
							failed = true
							return fails
						}
						return nil
					})
					a, stop := started(t, b, WithMin(4), WithMax(5))
					id := mustAllocate(t, a, "k")
					synctest.Wait()
					if len(s.mappings) != 1 || s.mappings[id] != "k" || s.refs["k"]["n"] != id || !failed {
						t.Errorf("%s, after it %v: got %d, store %s", op, after, id, s.contents())
					}
					if n := a.core.pool.free; n != 1 {
						t.Errorf("%s, after it %v: %d of 2 IDs are available", op, after, n)
					}
					mustRelease(t, a, "k")
					stop()
					if strings.Contains(s.contents(), "/") {
						t.Errorf("%s, after it %v: a reference is left: %s", op, after, s.contents())
					}
				}
			}
		}
	})
}

// TestStopEndsWaiting: a caller that waits for the list, for a key that another caller allocates, or for the next
// attempt returns when the allocator stops. A caller that allocates a key still gets its result.
func TestStopEndsWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for what, fault := range map[string]func(context.Context, string, bool) error{
			"the list":     failOn("list", false, errAway),
			"the turn":     nil,
			"next attempt": failOn("lock", false, errAway),
		} {
			b := newMemoryStore().backend("n")
			b.setFault(fault)
			goOn, ended := make(chan struct{}), make(chan error, 2)
			if what == "the turn" {
				b.setFault(func(_ context.Context, op string, _ bool) error { // regardless of its context
					if op == "lock" {
						<-goOn
					}
					return nil
				})
			}
			a, stop := started(t, b)
			allocate := func() {
				_, _, _, err := a.Allocate(context.Background(), textKey("k"))
				ended <- err
			}
			go allocate()
			synctest.Wait()
			go allocate()
			<-time.After(3 * time.Second)
			start := time.Now()
			stop()
			first := <-ended
			close(goOn)
			second := <-ended
			if !errors.Is(first, ErrStopped) || what == "the turn" && second != nil || what != "the turn" && !errors.Is(second, ErrStopped) {
				t.Errorf("waiting for %s: got %v and %v", what, first, second)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("waiting for %s: it took %s", what, took)
			}
		}
	})
}

// TestAllocateStolen: during an allocation, its ID is assigned to another key on this node; the allocation takes
// another ID.
func TestAllocateStolen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, when := range []string{"allocate", "acquire"} {
			s := newMemoryStore()
			b := s.backend("n")
			a, stop := started(t, b, WithMin(5), WithMax(6))
			steal := true
			b.setFault(func(_ context.Context, op string, after bool) error {
				if op != when || !steal || after != (when == "acquire") {
					return nil
				}
				steal = false
				id := uint64(5)
				a.mu.Lock()
				if a.core.pool.available(id) {
					id = 6
				}
				a.mu.Unlock()
				s.mu.Lock()
				s.set(id, "thief")
				s.refs["thief"] = map[string]uint64{"other": id}
				delete(s.refs, "k")
				s.mu.Unlock()
				if got := mustAllocate(t, a, "thief"); got != id {
					t.Errorf("%s: the thief got %d, not %d", when, got, id)
				}
				if when == "acquire" {
					return nil
				}
				s.behind(func() { s.set(id, "") })
				return errAway
			})
			if id := mustAllocate(t, a, "k"); id == mustAllocate(t, a, "thief") {
				t.Errorf("%s: both have %d", when, id)
			}
			b.setFault(nil)
			stop()
		}
	})
}
