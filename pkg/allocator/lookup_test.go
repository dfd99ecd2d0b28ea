package allocator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

// TestMappingsAgainstModel: of IDs with one key the least is the key's.
func TestMappingsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, model := newMappings(), make(map[uint64]string)
		id, text := rapid.Uint64Range(1, 8), rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n, key := id.Draw(t, "id"), text.Draw(t, "key")
				old := m.set(n, textKey(key))
				if fmt.Sprint(old) != fmt.Sprint(keyOrNil(model[n])) {
					t.Fatalf("%d was %v, not %q", n, old, model[n])
				}
				model[n] = key
			},
			"delete": func(t *rapid.T) {
				n := id.Draw(t, "id")
				if old := m.delete(n); fmt.Sprint(old) != fmt.Sprint(keyOrNil(model[n])) {
					t.Fatalf("%d was %v, not %q", n, old, model[n])
				}
				delete(model, n)
			},
			"": func(t *rapid.T) {
				least, times := make(map[string]uint64), make(map[string]int)
				for _, n := range slices.Sorted(maps.Keys(model)) {
					if times[model[n]]++; least[model[n]] == NoID {
						least[model[n]] = n
					}
				}
				for _, key := range []string{"a", "b", "c"} {
					if m.id(key) != least[key] || len(m.more[key]) != max(times[key]-1, 0) {
						t.Fatalf("%s is %d and %v, want %d of %v", key, m.id(key), m.more[key], least[key], model)
					}
				}
				got := make(map[uint64]string)
				for n, key := range m.all() {
					got[n] = key.GetKey()
				}
				if !maps.Equal(got, model) || len(m.ids) != len(least) {
					t.Fatalf("got %v, want %v", got, model)
				}
			},
		})
	})
}

func keyOrNil(text string) Key {
	if text == "" {
		return nil
	}
	return textKey(text)
}

// TestLookups asks the own cache first, then the remote ones, then the backend.
func TestLookups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() { s.set(1, "seen") })
		b := s.backend("n")
		b.blind = true
		b.setFault(func(ctx context.Context, op string, _ bool) error {
			if op == "watch" { // from now on the cache is old
				<-ctx.Done()
			}
			return nil
		})
		a := running(t, b, WithMax(100))
		synctest.Wait()
		s.behind(func() {
			s.set(2, "unseen")
			s.refs["unseen"] = map[string]uint64{"other": 2}
		})
		far := newMemoryStore()
		far.behind(func() { far.set(3, "remote") })
		rc := a.WatchRemoteKVStore("far", far.backend("x"), nil)
		watched(t, rc)
		used := mustAllocate(t, a, "used")

		type ask func(context.Context, Key) (uint64, error)
		type askByID func(context.Context, uint64) (Key, error)
		underLock := func(ctx context.Context, key Key) (uint64, error) {
			lock, err := b.Lock(ctx, key)
			if err != nil {
				return NoID, err
			}
			defer lock.Unlock()
			return a.GetIfLocked(ctx, key, lock)
		}
		byID := map[uint64]string{1: "seen", 2: "unseen", 3: "remote", used: "used"}
		for id, text := range byID {
			for name, f := range map[string]ask{"Get": a.Get, "GetIfLocked": underLock, "GetIncludeRemoteCaches": a.GetIncludeRemoteCaches, "GetNoCache": a.GetNoCache} {
				want := id
				if text == "remote" && name != "GetIncludeRemoteCaches" || text == "seen" && name == "GetNoCache" {
					want = NoID // nobody refers to it
				}
				if got, err := f(t.Context(), textKey(text)); err != nil || got != want {
					t.Errorf("%s(%s) = %d, %v, want %d", name, text, got, err, want)
				}
			}
			for name, f := range map[string]askByID{"GetByID": a.GetByID, "GetByIDIncludeRemoteCaches": a.GetByIDIncludeRemoteCaches} {
				want := keyOrNil(text)
				if text == "remote" && name == "GetByID" {
					want = nil
				}
				if got, err := f(t.Context(), id); err != nil || got != want {
					t.Errorf("%s(%d) = %v, %v, want %v", name, id, got, err, want)
				}
			}
		}
		for _, op := range []string{"get", "get by ID"} {
			b.setFault(failOn(op, false, errAway))
			_, err := a.Get(t.Context(), textKey("unknown"))
			_, err2 := a.GetByIDIncludeRemoteCaches(t.Context(), 101) // which nobody was given
			if !errors.Is(errors.Join(err, err2), errAway) {
				t.Errorf("%s: no error of the backend", op)
			}
		}
		lock, err := b.Lock(t.Context(), textKey("unknown"))
		if err != nil {
			t.Fatal(err)
		}
		lock.Unlock()
		if _, err := a.GetIfLocked(t.Context(), textKey("unknown"), lock); err == nil {
			t.Error("the lock is not held, and no error")
		}
	})
}

// watched watches the remote cache until the test ends, and waits for its list.
func watched(t *testing.T, rc *RemoteCache) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := rc.Watch(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Watch ended with %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func everything(a *Allocator) string {
	var out []string
	for id, key := range a.ForEach() {
		out = append(out, fmt.Sprint(id, "=", key))
	}
	return strings.Join(out, " ")
}

// TestRemoteCaches: what is known of a cluster stays when its connection is
// lost, until a new cache has a complete list.
func TestRemoteCaches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, far := newMemoryStore(), newMemoryStore()
		s.behind(func() { s.set(9, "own") })
		far.behind(func() {
			far.set(2, "b")
			far.set(1, "a")
			far.set(66, "refused")
		})
		a := running(t, s.backend("n"))
		accept := func(id uint64, _ Key) error {
			if id > 50 {
				return errors.New("not in the range")
			}
			return nil
		}
		wants := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := everything(a); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		old := a.WatchRemoteKVStore("far", far.backend("x"), accept)
		wants("before the watch", "9=own")
		if old.Synced() {
			t.Error("in sync before the watch")
		}
		stop := watched(t, old)
		wants("with a remote", "9=own 1=a 2=b")
		if !old.Synced() || old.NumEntries() != 2 {
			t.Errorf("in sync: %v, %d entries", old.Synced(), old.NumEntries())
		}
		far.behind(func() {
			far.set(3, "c")
			far.set(1, "")
		})
		wants("after changes", "9=own 2=b 3=c")
		other := newMemoryStore()
		other.behind(func() { other.set(20, "z") })
		rc := a.WatchRemoteKVStore("another", other.backend("x"), accept)
		watched(t, rc)
		wants("in the order of names", "9=own 20=z 2=b 3=c")
		stop()
		wants("disconnected", "9=own 20=z 2=b 3=c")
		if err := old.Watch(t.Context()); err == nil {
			t.Error("watched twice")
		}

		far.behind(func() {
			far.set(2, "")
			far.set(4, "d")
		})
		slow := far.backend("x")
		listing := make(chan struct{})
		slow.setFault(func(_ context.Context, op string, _ bool) error {
			if op == "list" {
				<-listing
			}
			return nil
		})
		again := a.WatchRemoteKVStore("far", slow, accept)
		remoteWatcher{old}.OnUpsert(5, textKey("by the one that was replaced"))
		remoteWatcher{old}.OnDelete(3, textKey("c"))
		remoteWatcher{old}.OnReferencesLost()
		watched(t, again)
		wants("connecting again", "9=own 20=z 2=b 3=c")
		close(listing)
		wants("connected again", "9=own 20=z 3=c 4=d")
		old.Close()
		wants("closing the one that was replaced", "9=own 20=z 3=c 4=d")
		again.Close()
		again.Close()
		wants("closed", "9=own 20=z")
		far.behind(func() { far.set(7, "late") })
		wants("and changes nothing any more", "9=own 20=z")
		if again.NumEntries() != 0 || old.NumEntries() != 0 {
			t.Error("a closed cache has entries")
		}
	})
}

// TestRemoteListThatNeverEnds: nothing of what an earlier cache knew goes by a list
// that is not complete, and what that list has brought comes first.
func TestRemoteListThatNeverEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		far := newMemoryStore()
		far.behind(func() {
			far.set(1, "a")
			far.set(2, "b")
			far.set(3, "c")
		})
		var log bytes.Buffer
		a := running(t, newMemoryStore().backend("n"), WithListTimeout(time.Minute), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		watched(t, a.WatchRemoteKVStore("far", far.backend("x"), nil))()
		stuck := &listsForEver{tell: map[uint64]string{5: "a", 3: "d"}}
		replaced := a.WatchRemoteKVStore("far", stuck, nil)
		stop := watched(t, replaced)
		wants := func(when, want string, rc *RemoteCache, n int) {
			t.Helper()
			synctest.Wait()
			if got := everything(a); got != want || rc.NumEntries() != n {
				t.Errorf("%s: got %q, %d entries; want %q, %d", when, got, rc.NumEntries(), want, n)
			}
		}
		wants("not complete", "1=a 2=b 3=d 5=a", replaced, 4)
		for text, want := range map[string]uint64{"a": 5, "b": 2, "c": NoID, "d": 3} {
			if id, err := a.GetIncludeRemoteCaches(t.Context(), textKey(text)); id != want || err != nil {
				t.Errorf("%s has %d, want %d, %v", text, id, want, err)
			}
		}
		if key, err := a.GetByIDIncludeRemoteCaches(t.Context(), 3); err != nil || key.GetKey() != "d" {
			t.Errorf("3 is %v, %v", key, err)
		}
		time.Sleep(2 * time.Minute)
		wants("and never will be", "1=a 2=b 3=d 5=a", replaced, 4)
		if got := strings.Count(log.String(), "is not complete"); got != 1 || !strings.Contains(log.String(), "cluster=far after=1m0s listed=2 before=2") {
			t.Errorf("logged %d times: %s", got, &log)
		}
		stop()
		third := a.WatchRemoteKVStore("far", far.backend("x"), nil)
		watched(t, third)
		wants("one that is complete", "1=a 2=b 3=c", third, 3)
		time.Sleep(2 * time.Minute)
		if got := strings.Count(log.String(), "is not complete"); got != 1 {
			t.Errorf("logged %d times: %s", got, &log)
		}
		a.WatchRemoteKVStore("far", stuck, nil).Close()
		wants("closed", "", third, 0)
	})
}

// listsForEver is a source whose list never becomes complete.
type listsForEver struct{ tell map[uint64]string }

func (l *listsForEver) ListAndWatch(ctx context.Context, handler CacheMutations) error {
	for id, text := range l.tell {
		handler.OnUpsert(id, textKey(text))
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestForEachOfClosed: a remote cache that is closed while the iteration comes
// to it is left out.
func TestForEachOfClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		far := newMemoryStore()
		far.behind(func() { far.set(1, "a") })
		a := running(t, newMemoryStore().backend("n"))
		for _, name := range []string{"x", "y", "z"} {
			watched(t, a.WatchRemoteKVStore(name, far.backend("n"), nil))
		}
		var seen int
		for range a.ForEach() {
			if seen++; seen == 1 {
				a.remotes.byName["y"].cache.Close()
			}
		}
		if seen != 2 {
			t.Errorf("%d entries of the two caches that are left", seen)
		}
	})
}

// TestForEachStops where the caller stops, and the caller may call everything.
func TestForEachStops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		a := running(t, s.backend("n"))
		watched(t, a.WatchRemoteKVStore("far", s.backend("x"), nil))
		for range 3 {
			mustAllocate(t, a, fmt.Sprint(time.Now().UnixNano(), s.contents()))
		}
		synctest.Wait()
		for _, stopAt := range []int{1, 3, 4, 6} {
			seen := 0
			for _, key := range a.ForEach() {
				mustAllocate(t, a, key.GetKey())
				if seen++; seen == stopAt {
					break
				}
			}
			if seen != stopAt {
				t.Errorf("stopped at %d, want %d", seen, stopAt)
			}
		}
	})
}

// TestGC passes the rounds through, with the range.
func TestGC(t *testing.T) {
	t.Parallel()
	b := newMemoryStore().backend("n")
	a, err := NewAllocatorForGC(b, WithMin(5), WithMax(9))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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

// TestAnIDInUseHereIsNotDeleted, whatever the store says of its reference.
func TestAnIDInUseHereIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		a := running(t, s.backend("n"), WithMax(9))
		id := mustAllocate(t, a, "k")
		s.behind(func() { clear(s.refs) })
		if deleted, err := a.DeleteID(t.Context(), id); deleted || !errors.Is(err, ErrIDInUse) {
			t.Errorf("deleted %t, %v", deleted, err)
		}
		mustRelease(t, a, "k")
		if deleted, err := a.DeleteID(t.Context(), id); !deleted || err != nil {
			t.Errorf("deleted %t, %v", deleted, err)
		}
	})
}
