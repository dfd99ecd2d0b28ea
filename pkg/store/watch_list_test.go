package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestAnAbortedListDeletesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mem.SetPageSize(2)
	r.follow(numbered(10)...)
	_ = r.stop()
	r.mem.Wipe()
	for _, name := range numbered(3) {
		r.put(name, "1")
	}
	failed := failPages(r.mem)
	r.start(r.mem.Connect())
	<-failed
	_ = r.stop()
	r.expect("")
	r.mem.SetFault(nil)
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(map[string]string{"k0000": "1", "k0001": "1", "k0002": "1"})
}

// failPages makes lists fail after their first page. The returned channel is closed at the first failure.
func failPages(of *memory.Store) <-chan struct{} {
	failed := make(chan struct{})
	var once sync.Once
	of.SetFault(func(_ context.Context, op, _ string) error {
		if op == "page" {
			once.Do(func() { close(failed) })
			return errors.New("lost in the middle")
		}
		return nil
	})
	return failed
}

// TestBackToTheFirstServerAfterAnAbortedListOfAnother: an unfinished list of another server leaves a mixture. After the
// return to the first server nothing may be resumed.
func TestBackToTheFirstServerAfterAnAbortedListOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.follow("a", "b", "c")
	_ = r.stop()

	other := memory.New()
	other.Replace() // now it has another cluster ID than the first
	other = other.Connect()
	other.SetPageSize(1)
	for range 10 { // until its revision is higher than that of the first
		other.Set(testPrefix+"a", "other")
	}
	other.Set(testPrefix+"b", "other")
	failed := failPages(other)
	r.start(other)
	<-failed
	_ = r.stop()
	asOf := r.w.Status().AsOf
	r.w.Observe(kvstore.Probe{At: time.Now(), Head: r.mem.Position()})
	if got := r.w.Status().AsOf; got != asOf {
		t.Errorf("a mixture of two servers was proved equal to one, as of %v", got)
	}
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(first)
}

func TestAnotherPrefixIsListedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mem.Set("cilium/cache/x/v1/c2/b", "1")
	r.follow("a")
	_ = r.stop()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.w.Run(ctx, Session{Client: r.mem, Prefix: "cilium/cache/x/v1/c2/"}) }()
	r.until(map[string]string{"b": "1"})
	cancel()
	<-ended
}

func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.follow("a", "b")
	_ = r.stop()
	r.w.Drain()
	r.until(map[string]string{})
	if st := r.w.Status(); st.Synced || st.Count != 0 || !st.AsOf.IsZero() {
		t.Errorf("status after a drain: %+v", st)
	}
	r.start(r.mem)
	defer r.stop()
	r.until(map[string]string{"a": "1", "b": "1"})
}

// TestFreshness: a probe proves equality as of its time only after everything up to its revision was applied, also when
// the revision increased because of other keys.
func TestFreshness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := time.Now()
	r.follow("a")
	defer r.stop()
	r.awaitStatus("following", func(s Status) bool { return s.Following })
	if asOf := r.w.Status().AsOf; asOf.Before(before) {
		t.Errorf("after the list the entries are as of %v, which is before the start at %v", asOf, before)
	}
	r.mem.Set("cilium/state/other", "1") // increases the revision without changing the prefix
	at := time.Now()
	r.w.Observe(kvstore.Probe{At: at, Head: r.mem.Position()})
	r.awaitStatus("as of the probe", func(s Status) bool { return s.AsOf.Equal(at) })

	// A revision that is not reached proves nothing, and neither does a failed probe.
	head := r.mem.Position()
	r.w.Observe(kvstore.Probe{At: time.Now(), Head: kvstore.Position{ClusterID: head.ClusterID, Revision: head.Revision + 100}})
	r.w.Observe(kvstore.Probe{At: time.Now(), Err: errors.New("no answer")})
	r.w.Observe(kvstore.Probe{At: time.Now(), Head: kvstore.Position{ClusterID: head.ClusterID + 1, Revision: 1}})
	if got := r.w.Status().AsOf; !got.Equal(at) {
		t.Errorf("as of %v, although nothing later was proved than %v", got, at)
	}
}

func (r *rig) awaitStatus(what string, ok func(Status) bool) {
	r.t.Helper()
	waittest.Until(r.t, what, func() bool { return ok(r.w.Status()) }, func() string { return fmt.Sprintf("status %+v", r.w.Status()) })
}

// TestWatchMachine: after random changes of the kvstore and random losses of the connection, the table finally equals
// the kvstore.
func TestWatchMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t)
		r.mem.SetPageSize(rapid.IntRange(1, 4).Draw(t, "page"))
		want := map[string]string{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		values := rapid.SampledFrom([]string{"1", "2", "3"})
		session := r.mem
		r.start(session)
		put := func(name, value string) { r.put(name, value); want[name] = value }
		reconnect := func() {
			_ = r.stop()
			session = r.mem.Connect()
			r.start(session)
		}
		actions := map[string]func(*rapid.T){
			"put": func(t *rapid.T) { put(names.Draw(t, "name"), values.Draw(t, "value")) },
			"delete": func(t *rapid.T) {
				name := names.Draw(t, "name")
				r.mem.Unset(testPrefix + name)
				delete(want, name)
			},
			"wipe and overtake": func(t *rapid.T) {
				clear(want)
				for range rapid.IntRange(0, 4).Draw(t, "writes") {
					want[names.Draw(t, "name")] = values.Draw(t, "value")
				}
				_ = r.stop()
				r.overtaken(want)
				session = r.mem.Connect()
				r.start(session)
			},
			"break":   func(t *rapid.T) { r.mem.Break(nil) },
			"compact": func(t *rapid.T) { r.mem.Compact() },
			"replace": func(t *rapid.T) {
				r.mem.Replace()
				clear(want)
				for range rapid.IntRange(0, 4).Draw(t, "writes") {
					put(names.Draw(t, "name"), values.Draw(t, "value"))
				}
				reconnect()
			},
			"reconnect": func(*rapid.T) { reconnect() },
			"at rest":   func(*rapid.T) { r.until(want) },
		}
		t.Repeat(actions)
		r.until(want)
		_ = r.stop()
	})
}

// TestRefusedIsAskedForMoreAndMoreRarely: a prefix that our user may not read is requested again within a minute, and
// the status shows that. The next session requests it at once. The usual pauses apply when it fails for another reason,
// or was granted meanwhile.
func TestRefusedIsAskedForMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mem.Set(testPrefix+"a", "1")
		var mu sync.Mutex
		reason, tries, last := kvstore.ErrPermissionDenied, 0, time.Now()
		longest := time.Duration(0)
		because := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reason = err
		}
		r.mem.SetFault(func(_ context.Context, op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if op != "list" && op != "recall" || reason == nil {
				return nil
			}
			longest = max(longest, time.Since(last))
			tries, last = tries+1, time.Now()
			return reason
		})
		during := func(what string, d time.Duration, least, most int) {
			t.Helper()
			mu.Lock()
			tries, last, longest = 0, time.Now(), 0
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if tries < least || tries > most || longest > time.Minute {
				t.Errorf("%s: asked %d times within %s, want %d to %d; the longest pause was %s", what, tries, d, least, most, longest)
			}
		}
		r.start(r.mem)
		during("at first", 10*time.Second, 5, 20)
		during("then", 3*time.Minute, 3, 20)
		during("for long", time.Hour, 60, 200)
		_ = r.stop()
		r.start(r.mem.Connect())
		during("the next session", 5*time.Second, 5, 20)
		during("the next session, later", time.Hour, 60, 200)
		because(errors.New("another one"))
		time.Sleep(time.Minute)
		during("for another reason", time.Minute, 6, 30)
		because(kvstore.ErrPermissionDenied)
		time.Sleep(time.Minute)
		during("refused again", time.Hour, 60, 200)
		if err := r.w.Status().Err; !errors.Is(err, kvstore.ErrPermissionDenied) || !strings.Contains(err.Error(), "tried again within a minute") {
			t.Errorf("the status says %v", err)
		}
		because(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := r.w.Status(); !st.Synced || !st.Following || st.Err != nil {
			t.Errorf("%+v", st)
		}
		r.mem.Set(testPrefix+"a", "2") // the stream delivers an event
		synctest.Wait()
		because(kvstore.ErrPermissionDenied)
		r.mem.Break(kvstore.ErrPermissionDenied)
		during("taken away again", 10*time.Second, 5, 20)
		_ = r.stop()
	})
}

// TestADeletionIsPartOfTheProof: a server is restored from a backup with a key that was deleted last, and reaches the same
// revision. Of many keys, only some are compared.
func TestADeletionIsPartOfTheProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := map[string]string{"a": "1"}
	r.put("a", "1")
	for i := range 2 * follow.ProofKeys {
		name := fmt.Sprint("b", 1000+i)
		want[name] = "1"
		r.put(name, "1")
	}
	backup := r.mem.Backup()
	r.start(r.mem.Connect())
	r.until(want)
	r.mem.Unset(testPrefix + "a")
	without := maps.Clone(want)
	delete(without, "a")
	r.until(without)
	_ = r.stop()
	r.mem.Restore(backup)
	r.mem.Set("other", "1")
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(want)
}

// TestNoKeysAreNoProof: a server that was empty is restored from a backup. Its earlier history causes no changes.
func TestNoKeysAreNoProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.mem.Unset(testPrefix + "a")
	r.put("b", "1")
	backup := r.mem.Backup()
	r.mem.Wipe()
	r.start(r.mem.Connect())
	r.awaitStatus("the list of no keys", func(st Status) bool { return st.Synced && st.Following })
	_ = r.stop()
	r.mem.Restore(backup)
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(map[string]string{"b": "1"})
	r.expect("+b=1")
}
