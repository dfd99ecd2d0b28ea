package allocator

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPause checks the pauses between attempts.
func TestPause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failures int
		jitter   float64
		want     time.Duration
	}{
		"first, at least":   {1, 0, 10 * time.Millisecond},
		"first, in between": {1, 0.5, 15 * time.Millisecond},
		"second":            {2, 0, 20 * time.Millisecond},
		"fifth":             {5, 0, 160 * time.Millisecond},
		"tenth, bounded":    {10, 0, 5 * time.Second},
		"many":              {1000, 0, 5 * time.Second},
	}
	for name, tc := range tests {
		if got := pause(tc.failures, tc.jitter); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestReleaseWhileAway: a release counts although the store is away, and the reference is deleted as soon as the store
// is back.
func TestReleaseWhileAway(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		mustAllocate(t, a, "k")
		b.setFault(failOn("release", false, errAway))
		if !mustRelease(t, a, "k") {
			t.Error("not the last use")
		}
		wantContents(t, s, "5=k k/n=5")
		if _, err := a.Release(t.Context(), textKey("k")); !errors.Is(err, ErrIdentityNonExistent) {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Hour)
		wantContents(t, s, "5=k k/n=5")
		if n := b.count("release"); n < 360 || n > 730 {
			t.Errorf("tried %d times in an hour", n)
		}
		b.setFault(nil)
		<-time.After(pauseMax)
		wantContents(t, s, "5=k")
		if len(a.core.uses) != 0 {
			t.Errorf("%d keys are remembered", len(a.core.uses))
		}
	}, WithMin(5), WithMax(5))
}

// TestReleaseCancelled: the reference is deleted although the caller does not wait for it.
func TestReleaseCancelled(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		mustAllocate(t, a, "k")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if last, err := a.Release(ctx, textKey("k")); !last || err != nil {
			t.Errorf("got %v, %v", last, err)
		}
		<-time.After(pauseFirst)
		wantContents(t, s, "5=k")
	}, WithMin(5), WithMax(5))
}

// TestAllocateWhileReleasing: a key that is used again while the deletion of its reference is pending, or in progress,
// keeps its reference.
func TestAllocateWhileReleasing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, under := range []string{"pending", "under way", "under way, and fails"} {
			s := newMemoryStore()
			b := s.backend("n")
			a, stop := started(t, b, WithMin(5), WithMax(5))
			mustAllocate(t, a, "k")
			goOn := make(chan struct{})
			if under == "pending" {
				b.setFault(failOn("release", false, errAway))
				mustRelease(t, a, "k")
			} else {
				b.setFault(func(_ context.Context, op string, _ bool) error {
					if op != "release" {
						return nil
					}
					<-goOn
					if under == "under way" {
						return nil
					}
					return errAway
				})
				go func() { _, _ = a.Release(context.Background(), textKey("k")) }()
				synctest.Wait()
			}
			allocated := make(chan uint64, 1)
			go func() { allocated <- mustAllocate(t, a, "k") }()
			synctest.Wait()
			close(goOn)
			if id := <-allocated; id != 5 {
				t.Errorf("%s: got %d", under, id)
			}
			<-time.After(time.Minute)
			wantContents(t, s, "5=k k/n=5")
			stop()
		}
	})
}

// TestProtection: changes that others make to a mapping in use, and to its reference, are undone at once.
func TestProtection(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		id := mustAllocate(t, a, "k")
		s.behind(func() { s.set(11-id, "unused") })
		synctest.Wait()
		want := s.contents()
		start := time.Now()
		for what, harm := range map[string]func(){
			"deleted":                    func() { s.set(id, "") },
			"deleted with its reference": func() { s.set(id, ""); delete(s.refs, "k") },
			"altered":                    func() { s.set(id, "x") },
			"altered twice":              func() { s.set(id, "x"); s.set(id, "y") },
			"altered with its reference": func() { s.set(id, "x"); delete(s.refs, "k") },
			"altered and deleted":        func() { s.set(id, "x"); s.set(id, "") },
		} {
			s.behind(harm)
			synctest.Wait()
			if got := s.contents(); got != want {
				t.Errorf("%s: the store has %q, want %q", what, got, want)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s", took)
		}
		if n := b.count("restore"); n < 3 {
			t.Errorf("%d restored", n)
		}
		if _, ok := a.core.pool.Lease(); ok {
			t.Error("an ID in use was available")
		}
		s.behind(func() { s.set(11-id, "") })
		synctest.Wait()
		if got := s.contents(); strings.Contains(got, "unused") || a.core.pool.free != 1 {
			t.Errorf("a mapping that is not in use was put back: %s", got)
		}
	}, WithMin(5), WithMax(6), WithMasterKeyProtection())
}

// TestProtectionWhileAway: changes are undone as soon as the store is back.
func TestProtectionWhileAway(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		id := mustAllocate(t, a, "k")
		want := s.contents()
		b.setFault(blockOn("update"))
		s.behind(func() { s.set(id, "") })
		<-time.After(time.Hour)
		if n := b.count("update"); n < 180 || n > 720 {
			t.Errorf("tried %d times in an hour", n)
		}
		b.setFault(nil)
		<-time.After(jobTimeout + pauseMax)
		wantContents(t, s, want)
	}, WithMin(5), WithMax(6), WithMasterKeyProtection())
}

// TestProtectionWithinAllocation: a mapping that is deleted while its key is being allocated is put back too.
func TestProtectionWithinAllocation(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		for text, harm := range map[string]func(){
			"k": func() { s.set(5, "") },
			"l": func() { s.set(5, "x") },
		} {
			b.setFault(func(_ context.Context, op string, after bool) error {
				if op == "acquire" && after {
					s.behind(harm)
					<-time.After(time.Second) // the watch reports it
				}
				return nil
			})
			mustAllocate(t, a, text)
			b.setFault(nil)
			wantContents(t, s, "5="+text+" "+text+"/n=5")
			mustRelease(t, a, text)
			s.behind(func() { s.set(5, "") })
			synctest.Wait()
		}
	}, WithMin(5), WithMax(5), WithMasterKeyProtection())
}

// TestConflict: when others altered a mapping in use, and the altered mapping is in use as well, it is reported and not
// put back until it is unused.
func TestConflict(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		var logged bytes.Buffer
		a := running(t, s.backend("n"), WithMin(5), WithMax(5), WithMasterKeyProtection(),
			WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		mustAllocate(t, a, "k")
		s.behind(func() {
			s.set(5, "x")
			s.refs["x"] = map[string]uint64{"other": 5}
		})
		wantContents(t, s, "5=x k/n=5 x/other=5")
		if text := logged.String(); !strings.Contains(text, "the mapping says x, and that is in use: two keys have one ID") || strings.Count(text, "\n") != 1 {
			t.Errorf("logged %s", text)
		}
		if _, _, _, err := a.Allocate(t.Context(), textKey("x")); !errors.Is(err, errInUse) {
			t.Errorf("the ID was given to a second key on this node: %v", err)
		}
		s.behind(func() { delete(s.refs, "x") })
		<-time.After(pauseMax)
		wantContents(t, s, "5=k k/n=5")
	})
}

// TestConflictOfIDs: a key that another node allocated with another ID, while mapping and reference were missing, is
// reported.
func TestConflictOfIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		var logged bytes.Buffer
		a := running(t, s.backend("n"), WithMin(5), WithMax(5), WithMasterKeyProtection(),
			WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		mustAllocate(t, a, "k")
		s.behind(func() {
			s.refs["k"] = map[string]uint64{"other": 6}
			s.set(6, "k")
			s.set(5, "")
		})
		synctest.Wait()
		if got := s.contents(); got != "5=k 6=k k/n=5 k/other=6" {
			t.Errorf("the store has %s", got)
		}
		if text := logged.String(); !strings.Contains(text, "under another ID") || !strings.Contains(text, "several IDs") {
			t.Errorf("logged %s", text)
		}
	})
}

// TestRefresh: at every interval the missing mappings and references of used keys are written again. Nothing else is
// changed.
func TestRefresh(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		mustAllocate(t, a, "k")
		s.behind(func() {
			s.set(5, "")
			delete(s.refs, "k")
			s.set(7, "unused")
		})
		<-time.After(59 * time.Second)
		wantContents(t, s, "7=unused")
		<-time.After(time.Second)
		wantContents(t, s, "5=k 7=unused k/n=5")
		mustRelease(t, a, "k")
		<-time.After(time.Hour)
		wantContents(t, s, "5=k 7=unused")
		if n := b.count("update"); n != 1 {
			t.Errorf("%d refreshes", n)
		}
	}, WithMin(5), WithMax(5), WithSyncInterval(time.Minute))
}

// TestRefreshOfMany: a round refreshes all keys, with a bounded number of calls at once.
func TestRefreshOfMany(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		const keys = 100
		for n := range keys {
			mustAllocate(t, a, strings.Repeat("k", n+1))
		}
		synctest.Wait()
		b.setFault(func(context.Context, string, bool) error {
			<-time.After(time.Second) // before and after each call
			return nil
		})
		start := time.Now()
		watcher{a}.OnReferencesLost()
		for b.count("update") < keys {
			<-time.After(time.Second)
		}
		if took := time.Since(start); took < 72*time.Second || took > 81*time.Second {
			t.Errorf("took %s", took)
		}
		b.setFault(nil)
		s.rightly(t)
	})
}

// TestReleaseWhileRefreshing: a key that is released while it is refreshed
// loses the reference that the refresh wrote.
func TestReleaseWhileRefreshing(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		mustAllocate(t, a, "k")
		goOn := make(chan struct{})
		b.setFault(holdOn("update", goOn))
		watcher{a}.OnReferencesLost()
		synctest.Wait()
		if !mustRelease(t, a, "k") {
			t.Error("not the last use")
		}
		close(goOn)
		wantContents(t, s, "5=k")
		if len(a.core.uses) != 0 {
			t.Errorf("%d keys are remembered", len(a.core.uses))
		}
	}, WithMin(5), WithMax(5))
}
