package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const testPrefix = "cilium/state/x/v1/c2/"

// rig is a Watch on a kvstore in memory, and the table that it fills.
type rig struct {
	t   waittest.T
	mem *memory.Store
	w   *Watch[string]

	mu      sync.Mutex
	table   view
	history []string // "+name=value" and "-name"
	wake    chan struct{}

	cancel context.CancelFunc
	ended  chan error
}

func newRig(t waittest.T) *rig {
	r := &rig{t: t, mem: memory.New(), table: view{}, wake: make(chan struct{}, 1)}
	r.w = NewWatch(Kind[string]{
		Resource: "x",
		Decode:   func(wire.Expect) Decode[string] { return decodeText },
		Apply:    r.apply,
	}, slog.New(slog.DiscardHandler))
	return r
}

func (r *rig) apply(changes []Change[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ch := range changes {
		r.table.apply(r.t, ch)
		if ch.New == nil {
			r.history = append(r.history, "-"+ch.Name)
		} else {
			r.history = append(r.history, "+"+ch.Name+"="+*ch.New)
		}
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *rig) start(client kvstore.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.w.Run(ctx, Session{Client: client, Prefix: testPrefix}) }()
}

// stop ends the run, and says why it ended if it had already.
func (r *rig) stop() error {
	r.cancel()
	return <-r.ended
}

func (r *rig) put(name, value string) { r.mem.Set(testPrefix+name, value) }

// until waits for the table to hold just these.
func (r *rig) until(want map[string]string) {
	r.t.Helper()
	waittest.Try(r.t, "the table to hold what it should", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !maps.Equal(want, map[string]string(r.table)) {
			return errors.New("(-want +got)\n" + cmp.Diff(want, map[string]string(r.table)))
		}
		return nil
	})
}

// happened returns what was applied since the last call.
func (r *rig) happened() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := strings.Join(r.history, " ")
	r.history = nil
	return h
}

func (r *rig) expect(what string) {
	r.t.Helper()
	if got := r.happened(); got != what {
		r.t.Fatalf("applied %q, want %q", got, what)
	}
}

func TestListThenEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "bad")
	r.mem.Set("cilium/state/x/v1/c20/other", "of a sibling")
	r.start(r.mem)
	r.until(map[string]string{"a": "1"})
	r.put("b", "2")
	r.put("a", "bad") // refused: the one before stays
	r.mem.Unset(testPrefix + "b")
	r.put("c", "3")
	r.until(map[string]string{"a": "1", "c": "3"})
	r.expect("+a=1 +b=2 -b +c=3")
	if st := r.w.Status(); !st.Synced || st.Count != 2 || st.Rejected != 1 || st.LastEvent.IsZero() {
		t.Errorf("status %+v", st)
	}
	if err := r.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
	r.expect("") // stopping withdraws nothing
}

func TestABrokenStreamResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "1")
	r.start(r.mem)
	defer r.stop()
	r.until(map[string]string{"a": "1", "b": "1"})
	r.happened()
	lists := 0
	var mu sync.Mutex
	r.mem.SetFault(func(_ context.Context, op, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "list" && key == testPrefix {
			lists++
		}
		return nil
	})
	r.mem.Break(nil)
	r.mem.Unset(testPrefix + "b")
	r.put("c", "1")
	r.until(map[string]string{"a": "1", "c": "1"})
	r.expect("-b +c=1")
	mu.Lock()
	defer mu.Unlock()
	if lists != 0 {
		t.Errorf("listed %d times, although it could resume", lists)
	}
}

// away lets things happen while nothing can be read.
func (r *rig) away(f func()) {
	r.mem.SetFault(func(context.Context, string, string) error { return errors.New("away") })
	r.mem.Break(nil)
	f()
	r.mem.SetFault(nil)
}

func TestCompactedWhileAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "1")
	r.put("c", "1")
	r.start(r.mem)
	defer r.stop()
	r.until(map[string]string{"a": "1", "b": "1", "c": "1"})
	r.happened()
	r.away(func() {
		r.mem.Unset(testPrefix + "b")
		r.put("c", "2")
		r.put("d", "1")
		r.mem.Compact()
		r.expect("") // nothing is withdrawn while it lasts
	})
	r.until(map[string]string{"a": "1", "c": "2", "d": "1"})
	r.expect("+c=2 +d=1 -b") // deletions after the upserts
}

func TestWipedUnderTheSameClusterID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 20 {
		r.put(fmt.Sprint("k", i), "1")
	}
	all := map[string]string{}
	for i := range 20 {
		all[fmt.Sprint("k", i)] = "1"
	}
	r.start(r.mem)
	r.until(all)
	r.happened()
	r.away(func() {
		r.mem.Wipe()
		r.put("k3", "1") // as before, at another revision
		r.put("new", "1")
	})
	if err := <-r.ended; !errors.Is(err, kvstore.ErrServerChanged) {
		t.Fatalf("Run ended with %v", err)
	}
	r.expect("")
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(map[string]string{"k3": "1", "new": "1"})
	if h := r.happened(); strings.Contains(h, "k3") {
		t.Errorf("the unchanged k3 caused an event: %s", h)
	}
}

// overtaken empties the server, writes the keys to it, and moves it beyond the
// revision at which it was before, all while nobody sees it.
func (r *rig) overtaken(keys map[string]string) {
	r.away(func() {
		before := r.mem.Position()
		r.mem.Wipe()
		for _, name := range slices.Sorted(maps.Keys(keys)) {
			r.put(name, keys[name])
		}
		for r.mem.Position().Revision <= before.Revision {
			r.mem.Set("cilium/.heartbeat", "now")
		}
	})
}

// A server that was wiped under its token and has overtaken the position looks
// like the one before. Both a small and a large set notice it, also when the
// keys are as many as before and most of them are written at the revisions of
// before, and go on without an event for what is unchanged.
func TestWipedAndOvertaken(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, follow.ProofKeys, 10 * follow.ProofKeys} {
		t.Run(fmt.Sprint(n, " keys"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			keys := map[string]string{}
			for i := range n {
				keys[fmt.Sprintf("k%04d", i)] = "1"
			}
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				r.put(name, keys[name])
			}
			r.put("k0000", "2") // the one written last
			keys["k0000"] = "2"
			r.start(r.mem)
			defer r.stop()
			r.until(keys)
			r.awaitStatus("following", func(s Status) bool { return s.Following })
			r.happened()
			delete(keys, fmt.Sprintf("k%04d", n-1))
			keys["new"] = "1"
			r.overtaken(keys)
			r.until(keys)
			if got, want := r.happened(), fmt.Sprintf("+new=1 -k%04d", n-1); got != want {
				t.Errorf("applied %q, want %q", got, want)
			}
		})
	}
}

func TestAnotherServerEndsTheSessionAndTheNextOneSweeps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "1")
	r.start(r.mem)
	r.until(map[string]string{"a": "1", "b": "1"})
	r.happened()
	r.mem.Replace()
	r.put("a", "1")
	if err := <-r.ended; !errors.Is(err, kvstore.ErrServerChanged) {
		t.Fatalf("Run ended with %v", err)
	}
	r.expect("")
	next := r.mem.Connect()
	r.start(next)
	defer r.stop()
	r.until(map[string]string{"a": "1"})
	r.expect("-b")
}

func TestAnAbortedListDeletesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mem.SetPageSize(2)
	all := map[string]string{}
	for i := range 10 {
		all[fmt.Sprint("k", i)] = "1"
		r.put(fmt.Sprint("k", i), "1")
	}
	r.start(r.mem)
	r.until(all)
	_ = r.stop()
	r.mem.Wipe()
	r.put("k0", "1")
	r.put("k1", "1")
	r.put("k2", "1")
	failed := make(chan struct{})
	var once sync.Once
	r.mem.SetFault(func(_ context.Context, op, _ string) error {
		if op == "page" {
			once.Do(func() { close(failed) })
			return errors.New("lost in the middle")
		}
		return nil
	})
	r.happened()
	r.start(r.mem.Connect())
	<-failed
	_ = r.stop()
	r.expect("")
	r.mem.SetFault(nil)
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(map[string]string{"k0": "1", "k1": "1", "k2": "1"})
}

// A list that another server began and did not finish leaves a mixture: going
// back to the first server, nothing may be resumed.
func TestBackToTheFirstServerAfterAnAbortedListOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := map[string]string{"a": "1", "b": "1", "c": "1"}
	for name, value := range first {
		r.put(name, value)
	}
	r.start(r.mem)
	r.until(first)
	_ = r.stop()

	other := memory.New()
	other.Replace() // now it has another cluster ID than the first
	other = other.Connect()
	other.SetPageSize(1)
	for range 10 { // its revisions are beyond those of the first
		other.Set(testPrefix+"a", "other")
	}
	other.Set(testPrefix+"b", "other")
	failed := make(chan struct{})
	var once sync.Once
	other.SetFault(func(_ context.Context, op, _ string) error {
		if op == "page" {
			once.Do(func() { close(failed) })
			return errors.New("lost in the middle")
		}
		return nil
	})
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

func TestAnotherPrefixIsListedAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.mem.Set("cilium/cache/x/v1/c2/b", "1")
	r.start(r.mem)
	r.until(map[string]string{"a": "1"})
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
	r.put("a", "1")
	r.put("b", "1")
	r.start(r.mem)
	r.until(map[string]string{"a": "1", "b": "1"})
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

// Freshness: a probe proves equality as of its time only once everything up to
// its revision was applied, also when the revision moved on for other keys.
func TestFreshness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	before := time.Now()
	r.start(r.mem)
	defer r.stop()
	r.until(map[string]string{"a": "1"})
	r.awaitStatus("following", func(s Status) bool { return s.Following })
	if asOf := r.w.Status().AsOf; asOf.Before(before) {
		t.Errorf("after the list the entries are as of %v, which is before the start at %v", asOf, before)
	}
	r.mem.Set("cilium/state/other", "1") // moves the revision, not this prefix
	at := time.Now()
	r.w.Observe(kvstore.Probe{At: at, Head: r.mem.Position()})
	r.awaitStatus("as of the probe", func(s Status) bool { return s.AsOf.Equal(at) })

	// A revision that was never reached proves nothing, a failed probe neither.
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
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !ok(r.w.Status()) {
		select {
		case <-poll.C:
		case <-deadline.C:
			r.t.Fatalf("waited in vain for: %s; status %+v", what, r.w.Status())
		}
	}
}

// TestWatchMachine: whatever happens to the kvstore and the connection, the
// table at rest equals what the kvstore holds.
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
				_ = r.stop()
				session = r.mem.Connect()
				r.start(session)
			},
			"reconnect": func(t *rapid.T) {
				_ = r.stop()
				session = r.mem.Connect()
				r.start(session)
			},
			"at rest": func(t *rapid.T) { r.until(want) },
		}
		t.Repeat(actions)
		r.until(want)
		_ = r.stop()
	})
}

// TestRefusedIsAskedForMoreAndMoreRarely: a prefix that our user may not read is asked
// for again within a minute, which the status says, at once in the next session, and as
// ever when it broke for another reason or was granted meanwhile.
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
		r.mem.Set(testPrefix+"a", "2") // the stream brings something
		synctest.Wait()
		because(kvstore.ErrPermissionDenied)
		r.mem.Break(kvstore.ErrPermissionDenied)
		during("taken away again", 10*time.Second, 5, 20)
		_ = r.stop()
	})
}
