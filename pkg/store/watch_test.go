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
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
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

// stop ends the run and returns its error, also if it had ended already.
func (r *rig) stop() error {
	r.cancel()
	return <-r.ended
}

func (r *rig) put(name, value string) { r.mem.Set(testPrefix+name, value) }

// follow starts a run with these keys, each with the value 1, and waits until they are in the table.
func (r *rig) follow(names ...string) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, name := range names {
		all[name] = "1"
		r.put(name, "1")
	}
	r.start(r.mem)
	r.until(all)
	r.happened()
	return all
}

// numbered returns n names.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("k%04d", i))
	}
	return names
}

// until waits until the table has exactly these entries.
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

// happened returns the changes applied since the last call.
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
	r.put("a", "bad") // refused: the previous value stays
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
	r.follow("a", "b")
	defer r.stop()
	var lists atomic.Int64
	r.mem.SetFault(func(_ context.Context, op, key string) error {
		if op == "list" && key == testPrefix {
			lists.Add(1)
		}
		return nil
	})
	r.mem.Break(nil)
	r.mem.Unset(testPrefix + "b")
	r.put("c", "1")
	r.until(map[string]string{"a": "1", "c": "1"})
	r.expect("-b +c=1")
	if n := lists.Load(); n != 0 {
		t.Errorf("listed %d times, although it could resume", n)
	}
}

// away calls f while nothing can be read.
func (r *rig) away(f func()) {
	r.mem.SetFault(func(context.Context, string, string) error { return errors.New("away") })
	r.mem.Break(nil)
	f()
	r.mem.SetFault(nil)
}

func TestWipedUnderTheSameClusterID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.follow(numbered(20)...)
	r.away(func() {
		r.mem.Wipe()
		r.put("k0003", "1") // the same value, at another revision
		r.put("new", "1")
	})
	if err := <-r.ended; !errors.Is(err, kvstore.ErrServerChanged) {
		t.Fatalf("Run ended with %v", err)
	}
	r.expect("")
	r.start(r.mem.Connect())
	defer r.stop()
	r.until(map[string]string{"k0003": "1", "new": "1"})
	if h := r.happened(); strings.Contains(h, "k0003") {
		t.Errorf("the unchanged k0003 caused an event: %s", h)
	}
}

// overtaken empties the server, writes the keys to it, and raises its revision beyond the previous one, all while the
// Watch is not connected.
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

// TestWipedAndOvertaken: a server that was wiped under its token, and whose revision is higher than the Watch's
// position, looks like the previous one. Small and large sets notice the difference, also when the number of keys is
// the same and most of them have their previous revisions. They continue without events for unchanged keys.
func TestWipedAndOvertaken(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, follow.ProofKeys, 10 * follow.ProofKeys} {
		t.Run(fmt.Sprint(n, " keys"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			keys := r.follow(numbered(n)...)
			defer r.stop()
			r.put("k0000", "2") // the last write
			keys["k0000"] = "2"
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

var must = waittest.Must
