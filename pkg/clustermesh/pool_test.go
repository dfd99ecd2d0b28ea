package clustermesh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// basin is a pool on a kvstore in memory. It records the calls of the pool.
type basin struct {
	*pool
	mem *memory.Store

	mu       sync.Mutex
	attempts []int
	refuse   error
	delay    time.Duration // of connecting
	calls    []string      // to the clients, about their bootstraps
	clients  []*noted
}

// noted is a client that records its calls.
type noted struct {
	client
	b *basin
}

func (n *noted) BootstrapBegins()   { n.b.note("begins") }
func (n *noted) BootstrapComplete() { n.b.note("complete") }

func (b *basin) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, what)
}

// inBasin runs f in a synctest bubble, and closes the pool afterwards.
func inBasin(t *testing.T, f func(t *testing.T, b *basin)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &basin{pool: newPool(etcd.DefaultOptions(), 500*time.Millisecond, 6*time.Second), mem: memory.New()}
		b.connect = func(ctx context.Context, _ *clientfile.Config, attempt int) (client, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.attempts = append(b.attempts, attempt)
			refuse, delay := b.refuse, b.delay
			b.mu.Unlock()
			defer b.mu.Lock()
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(delay):
			}
			if refuse != nil {
				return nil, refuse
			}
			n := &noted{b.mem.Connect(), b}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.clients = append(b.clients, n)
			return n, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		b.own(ctx, &g)
		f(t, b)
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func content(n byte) *clientfile.Config { return &clientfile.Config{Hash: [32]byte{n}} }

func (b *basin) mustJoin(t *testing.T, cluster string, cfg *clientfile.Config) *handle {
	t.Helper()
	h, err := b.join(t.Context(), cluster, cfg)
	if err != nil {
		t.Fatalf("join for %s: %v", cluster, err)
	}
	return h
}

func (b *basin) holds(t *testing.T, sessions, clusters, opened int) {
	t.Helper()
	if s, c, o := b.counts(); s != sessions || c != clusters || o != opened {
		t.Errorf("%d sessions with %d clusters, %d opened; want %d, %d, %d", s, c, o, sessions, clusters, opened)
	}
}

func TestEqualContentsShareASession(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.delay = time.Second
		var handles [3]*handle
		var g errgroup.Group
		for i, cluster := range []string{"a", "b", "c"} {
			g.Go(func() (err error) { handles[i], err = b.join(t.Context(), cluster, content(1)); return err })
		}
		must(t, g.Wait())
		b.holds(t, 1, 3, 1)
		other := b.mustJoin(t, "d", content(2))
		b.holds(t, 2, 4, 2)
		other.Close()
		other.Close()
		b.holds(t, 1, 3, 2)

		handles[0].Close()
		handles[1].Close()
		b.holds(t, 1, 1, 2)
		if _, err := handles[2].Head(t.Context()); err != nil {
			t.Errorf("the session ended with a handle that was not its last: %v", err)
		}
		handles[2].Close()
		b.holds(t, 0, 0, 2)
		synctest.Wait()
		if _, err := b.clients[0].Head(t.Context()); !errors.Is(err, kvstore.ErrClosed) {
			t.Errorf("after the last Close: %v", err)
		}
		b.mustJoin(t, "a", content(1)).Close()
		b.holds(t, 0, 0, 3)
		for _, cluster := range []string{"a", "b", "c", "d", "d"} {
			b.leave(cluster)
		}
		if len(b.places) != 0 || len(b.of) != 0 {
			t.Errorf("left behind: %d places, %d clusters", len(b.places), len(b.of))
		}
	})
}

func TestAnErrorOfConnectingGoesToAllWhoWait(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.delay, b.refuse = time.Second, errors.New("refused")
		var g errgroup.Group
		for _, cluster := range []string{"a", "b", "c"} {
			g.Go(func() error {
				if _, err := b.join(t.Context(), cluster, content(1)); !errors.Is(err, b.refuse) {
					t.Errorf("%s: %v", cluster, err)
				}
				return nil
			})
		}
		_ = g.Wait()
		// Each attempt tries the next endpoint, regardless of the cluster.
		for _, cluster := range []string{"c", "a"} {
			if _, err := b.join(t.Context(), cluster, content(1)); err == nil {
				t.Error("no error")
			}
		}
		if want := []int{0, 1, 2}; !slices.Equal(b.attempts, want) {
			t.Errorf("attempts %v, want %v", b.attempts, want)
		}
	})
}

func TestWhoStopsWaitingTakesNothingFromTheOthers(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.delay = time.Minute
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var g errgroup.Group
		g.Go(func() error {
			if _, err := b.join(impatient, "a", content(1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a: %v", err)
			}
			return nil
		})
		synctest.Wait() // a has started to connect
		h := b.mustJoin(t, "b", content(1))
		b.holds(t, 1, 1, 1)
		h.Close()
		// No caller waits any longer: connecting is cancelled.
		impatient, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.join(impatient, "a", content(1)); err == nil {
			t.Error("no error")
		}
		synctest.Wait()
		b.holds(t, 0, 0, 1)
	})
}

func TestASessionThatEndedIsNotHandedOut(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		var ends errgroup.Group
		var seen [2]error
		handles := []*handle{b.mustJoin(t, "a", content(1)), b.mustJoin(t, "b", content(1))}
		for i, h := range handles {
			ends.Go(func() error { seen[i] = h.Run(t.Context(), func(kvstore.Probe) {}); return nil })
		}
		b.mem.Replace()
		_ = ends.Wait()
		if seen[0] == nil || seen[0] != seen[1] {
			t.Errorf("the reasons differ: %v, %v", seen[0], seen[1])
		}
		// One cluster joins again before the other has closed.
		again := b.mustJoin(t, "a", content(1))
		if again.session == handles[0].session {
			t.Error("the session that ended was handed out again")
		}
		handles[0].Close()
		handles[1].Close()
		if _, err := again.Head(t.Context()); err != nil {
			t.Errorf("closing handles of the old session hurt the new one: %v", err)
		}
		again.Close()
	})
}

func TestProbesReachEveryHandle(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.mem.SetProbeInterval(time.Second)
		one, two := b.mustJoin(t, "a", content(1)), b.mustJoin(t, "b", content(1))
		count := func(h *handle, long time.Duration) (n int) {
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			if err := h.Run(ctx, func(kvstore.Probe) { n++ }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run: %v", err)
			}
			return n
		}
		var g errgroup.Group
		var a, c int
		g.Go(func() error { a = count(one, 9500*time.Millisecond); return nil })
		g.Go(func() error { c = count(two, 19500*time.Millisecond); return nil })
		_ = g.Wait()
		if a < 9 || a > 11 || c < 19 || c > 21 {
			t.Errorf("%d probes in 9.5 s, %d in 19.5 s, one each second", a, c)
		}
		// A handle that starts later gets the last result at once, without waiting for the next probe.
		if n := count(one, time.Millisecond); n != 1 {
			t.Errorf("%d probes at once", n)
		}
		one.Close()
		two.Close()
	})
}

func TestTheFirstSyncIsOverWhenAllSaySo(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		check := func(want ...string) {
			t.Helper()
			if !slices.Equal(b.calls, want) {
				t.Errorf("called %v, want %v", b.calls, want)
			}
		}
		one, two := b.mustJoin(t, "a", content(1)), b.mustJoin(t, "b", content(1))
		one.BootstrapComplete()
		one.BootstrapComplete()
		check()
		two.BootstrapComplete()
		check("complete")
		three := b.mustJoin(t, "c", content(1))
		check("complete", "begins")
		three.Close() // a handle that never completes does not count after it is closed
		check("complete", "begins", "complete")
		one.Close()
		two.Close()
		check("complete", "begins", "complete")
	})
}
