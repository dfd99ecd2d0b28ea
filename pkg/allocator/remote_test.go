package allocator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watched watches the remote cache until the test ends or stop is called, and waits for its list.
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

// TestRemoteCaches: the entries of a cluster stay when its connection is lost, until a new cache has a complete list.
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
		slow.setFault(holdOn("list", listing))
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

// TestRemoteListThatNeverEnds: an incomplete list deletes none of the entries of an earlier cache, and its own entries
// take precedence.
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
		<-time.After(2 * time.Minute) // twice the timeout
		wants("and never will be", "1=a 2=b 3=d 5=a", replaced, 4)
		if got := strings.Count(log.String(), "is not complete"); got != 1 || !strings.Contains(log.String(), "cluster=far after=1m0s listed=2 before=2") {
			t.Errorf("logged %d times: %s", got, &log)
		}
		stop()
		third := a.WatchRemoteKVStore("far", far.backend("x"), nil)
		watched(t, third)
		wants("one that is complete", "1=a 2=b 3=c", third, 3)
		<-time.After(2 * time.Minute)
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

// TestForEachOfClosed: a remote cache that is closed before the iteration reaches it is skipped.
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

// TestForEachStops: the iteration stops when the caller stops it, and the caller may call every method meanwhile.
func TestForEachStops(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
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

// TestRemoteEvents: the events of a cache's name add up to what lookups find under it, also when the cache is replaced
// or closed.
func TestRemoteEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, far := newMemoryStore(), newMemoryStore()
		far.behind(func() {
			far.set(2, "b")
			far.set(1, "a")
			far.set(66, "refused")
		})
		accept := func(id uint64, _ Key) error {
			if id > 50 {
				return errors.New("not in the range")
			}
			return nil
		}
		a, _ := started(t, s.backend("n"), WithEvents())
		wants := func(want ...string) {
			t.Helper()
			for _, w := range want {
				ev := <-a.GetEvents()
				if got := ev.Cluster + ": " + text(ev); got != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
			synctest.Wait()
			select {
			case ev := <-a.GetEvents():
				t.Errorf("got %q of %q, want nothing", text(ev), ev.Cluster)
			default:
			}
		}
		wants(": list done")
		old := a.WatchRemoteKVStore("far", far.backend("x"), accept, RemoteEvents())
		stop := watched(t, old)
		wants("far: create 1 a", "far: create 2 b", "far: list done")
		s.behind(func() { s.set(1, "own") })
		wants(": create 1 own") // IDs of the own cluster do not belong to other clusters
		far.behind(func() { far.set(1, "a2") })
		wants("far: modify 1 a2")
		remoteWatcher{old}.OnUpsert(1, textKey("a2"))
		remoteWatcher{old}.OnDelete(40, textKey("never there"))
		wants()
		stop()

		far.behind(func() {
			far.set(1, "")
			far.set(4, "d")
		})
		again := a.WatchRemoteKVStore("far", far.backend("x"), accept, RemoteEvents())
		remoteWatcher{old}.OnDelete(2, textKey("b")) // from the replaced cache
		watched(t, again)
		wants("far: create 4 d", "far: delete 1 a2", "far: list done")
		old.Close()
		wants()
		again.Close()
		wants("far: delete 2 b", "far: delete 4 d")

		quiet := a.WatchRemoteKVStore("quiet", far.backend("x"), accept)
		watched(t, quiet)
		quiet.Close()
		wants()
	})
}
