package kvbackend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The leases of nodes that may be killed are short, since other nodes see the death only when the lease ends.
const (
	leaseTTL = 3 * time.Second
	lockTTL  = 2 * time.Second
)

// The range of IDs in the tests.
const (
	firstID = 131072
	lastID  = 196607
)

// TestAnAllocationMayFailOrDieAnywhere breaks an allocation at each point, once with an error and once by killing the
// node, and then allocates the key on another node. The guarantees hold regardless of the keys left behind: the history
// of the kvstore has no moment at which a key had two IDs.
func TestAnAllocationMayFailOrDieAnywhere(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	all := points(t, server.Endpoint())
	other := joinForGood(t, server.Endpoint(), "10.0.9.8")
	t.Run("at", func(t *testing.T) {
		for i, point := range all {
			for at, mode := range []string{"fails", "dies"} {
				if testing.Short() && i%2 != at {
					continue // running all of them takes long
				}
				t.Run(fmt.Sprintf("%s %d %s", mode, i, point), func(t *testing.T) {
					t.Parallel()
					breakAt(t, join(t, server.Endpoint(), fmt.Sprintf("10.0.%d.%d", len(mode), i)), other, i, mode == "dies")
				})
			}
		}
	})
	h := check(t, server.Local())
	t.Logf("%d points, %d mappings made", len(all), h.made)
}

// breakAt breaks an allocation at the i-th point that it passes.
func breakAt(t *testing.T, m, other *member, i int, dies bool) {
	t.Helper()
	key := text(fmt.Sprintf("k8s:p=%t%d;", dies, i))
	passed := 0
	m.fault(func(string) error {
		if passed++; passed != i+1 {
			return nil
		}
		if dies {
			m.kill()
		}
		return errInjected
	})
	ctx := waittest.Context(t)
	mine, _, _, err := m.Allocate(ctx, key)
	if !dies && err != nil {
		t.Errorf("one fault was enough to fail: %v", err)
	}
	theirs, _, _, err := other.Allocate(ctx, key)
	must(t, err)
	if mine != allocator.NoID && mine != theirs {
		t.Errorf("%s is %d here and %d there", key, mine, theirs)
	}
}

// TestTheDeadLeaveNothing: the references and locks of a killed node are deleted with its lease, and two rounds of
// collection later the IDs are free.
func TestTheDeadLeaveNothing(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	m := join(t, server.Endpoint(), "10.0.0.1")
	for i := range 20 {
		if _, _, _, err := m.Allocate(t.Context(), text(fmt.Sprintf("k8s:n=%d;", i))); err != nil {
			t.Fatal(err)
		}
	}
	died := make(chan struct{})
	die := sync.OnceFunc(func() { m.kill(); close(died) })
	m.fault(func(point string) error { // it dies holding a lock
		if point == "after lock" {
			die()
		}
		return nil
	})
	_, _, _, err := m.Allocate(t.Context(), text("k8s:last=1;"))
	if err == nil {
		t.Error("the dead allocate")
	}
	<-died
	m.gone()
	client := server.Local()
	waittest.Until(t, "the leases to end", func() bool { return count(t, client, "value")+count(t, client, "locks") == 0 })
	collector := &site{t, sessiontest.Connect(t, server.Endpoint())}
	b := collector.backend("gc")
	stale, _, err := b.RunGC(t.Context(), nil, nil, firstID, lastID)
	if err != nil || len(stale) != 20 {
		t.Errorf("%d are unused, %v; want 20", len(stale), err)
	}
	_, stats, err := b.RunGC(t.Context(), nil, stale, firstID, lastID)
	if err != nil || stats.Deleted != 20 || count(t, client, "id") != 0 {
		t.Errorf("%+v, %v; want 20 deleted", stats, err)
	}
	check(t, client)
}

// TestAMappingInUseIsPutBack: a deleted mapping that is in use is put back with the same ID.
func TestAMappingInUseIsPutBack(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	m := joinForGood(t, server.Endpoint(), "10.0.0.1", allocator.WithSyncInterval(time.Second))
	want := map[text]uint64{}
	for i := range 20 {
		key := text(fmt.Sprintf("k8s:n=%d;", i))
		id, _, _, err := m.Allocate(t.Context(), key)
		must(t, err)
		want[key] = id
	}
	client := server.Local()
	for _, part := range []string{"/id/", "/value/", "/"} {
		if _, err := client.Delete(t.Context(), base+part, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "everything to be put back", func() bool { return count(t, client, "id") == 20 && count(t, client, "value") == 20 })
		for key, id := range want {
			resp, err := client.Get(t.Context(), fmt.Sprintf("%s/id/%d", base, id))
			if err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != string(key) {
				t.Errorf("%d is %v, %v; want %s", id, resp.Kvs, err, key)
			}
		}
	}
}

// The size of TestTheGuaranteesHold.
const (
	members = 8
	rounds  = 6 // of every member, each over a tenth of the keys
	life    = 3 // rounds of a node; it is killed in the last one
)

// churn is the state of TestTheGuaranteesHold.
type churn struct {
	*testing.T
	server      *etcdtest.Process
	overlapping int // number of keys that the nodes share
	kills       atomic.Int64
	faults      atomic.Int64
	calls       atomic.Int64
}

// live runs nodes of one name one after another: each works until it is killed, the last one until its work is done.
func (c *churn) live(ctx context.Context, i int) error {
	rnd := rand.New(rand.NewPCG(7, uint64(i)))
	for round := 0; round < rounds && ctx.Err() == nil; {
		m := join(c.T, c.server.Endpoint(), fmt.Sprintf("10.0.0.%d", i))
		var mu sync.Mutex
		m.fault(func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(50) > 0 {
				return nil
			}
			c.faults.Add(1)
			return errInjected
		})
		dead := context.Background()
		if round%life == life-1 {
			killed, kill := context.WithCancel(context.Background())
			dead = killed
			after := time.AfterFunc(time.Duration(50+rnd.IntN(200))*time.Millisecond, func() {
				c.kills.Add(1)
				kill() // first, so that the errors that follow are not taken for faults
				m.kill()
			})
			defer after.Stop()
			defer kill()
		}
		var err error
		for ; round < rounds && err == nil && dead.Err() == nil; round++ {
			err = c.round(ctx, m, rand.New(rand.NewPCG(uint64(round), uint64(i))))
			if dead == context.Background() && round%life == life-2 {
				round++
				break
			}
		}
		if err != nil && dead.Err() == nil {
			return err
		}
		m.fault(noFault)
		m.stop()
		m.gone()
	}
	return ctx.Err()
}

// round allocates some keys and releases most of them.
func (c *churn) round(ctx context.Context, m *member, rnd *rand.Rand) error {
	var g errgroup.Group
	g.SetLimit(16)
	for range c.overlapping / 10 {
		key := text(fmt.Sprintf("k8s:n=%d;", rnd.IntN(c.overlapping)))
		keep := rnd.IntN(5) == 0
		g.Go(func() error {
			c.calls.Add(1)
			if _, _, _, err := m.Allocate(ctx, key); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if keep {
				return nil
			}
			if _, err := m.Release(ctx, key); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// collect runs garbage collection until ctx ends.
func (c *churn) collect(ctx context.Context) error {
	m := join(c.T, c.server.Endpoint(), "gc")
	var stale allocator.StaleIDs
	for waiting.Sleep(ctx, 250*time.Millisecond) == nil {
		next, _, err := m.RunGC(ctx, nil, stale)
		if err == nil {
			stale = next
		}
	}
	return nil
}

// TestTheGuaranteesHold: eight nodes share 2,000 keys and work all at once. Every 50th step fails before or after it is
// done, nodes are killed and restart under their names, collection runs all the time, and the etcd is killed and
// restarted. At no revision of its history had a key two IDs, an ID two keys, or a reference no mapping. After the
// leases of the killed nodes have ended, two rounds of collection leave nothing behind.
func TestTheGuaranteesHold(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	c := &churn{T: t, server: etcdtest.StartProcess(t), overlapping: 2000}
	if heaptest.Raced {
		c.overlapping /= 5 // make test-all runs all of them without the race detector
	}
	client := c.server.Client(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g, collector errgroup.Group
	collector.Go(func() error { return c.collect(ctx) })
	for i := range members {
		g.Go(func() error { return c.live(ctx, i+1) })
	}
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	for range 2 {
		if waiting.Sleep(ctx, 2*time.Second) == nil {
			c.server.Kill(t)
			c.server.Restart(t)
		}
	}
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waittest.Until(t, "the leases of the dead to end", func() bool { return count(t, client, "value")+count(t, client, "locks") == 0 })
	waittest.Until(t, "collection to leave nothing", func() bool { return count(t, client, "id") == 0 })
	cancel()
	if err := collector.Wait(); err != nil {
		t.Error(err)
	}
	h := check(t, client)
	t.Logf("%d allocations, %d mappings made and %d deleted, %d faults, %d nodes killed",
		c.calls.Load(), h.made, h.deleted, c.faults.Load(), c.kills.Load())
	if h.made < c.overlapping/2 || c.faults.Load() < int64(c.overlapping/20) || c.kills.Load() == 0 {
		t.Error("hardly anything was tried")
	}
}

// TestAMissingMappingMakesNoSecondNumber: mappings in use are deleted, and another node allocates the keys before the
// mappings are put back.
func TestAMissingMappingMakesNoSecondNumber(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	one, two := joinForGood(t, server.Endpoint(), "10.0.0.1"), joinForGood(t, server.Endpoint(), "10.0.0.2")
	for i := range 20 {
		key := text(fmt.Sprintf("k8s:n=%d;", i))
		id, _, _, err := one.Allocate(t.Context(), key)
		must(t, err)
		if _, err := server.Local().Delete(t.Context(), fmt.Sprintf("%s/id/%d", base, id)); err != nil {
			t.Fatal(err)
		}
		if other, _, _, err := two.Allocate(t.Context(), key); err != nil || other != id {
			t.Errorf("%s is %d here and %d there, %v", key, id, other, err)
		}
	}
	if n := count(t, server.Local(), "id"); n != 20 {
		t.Errorf("%d mappings, want 20", n)
	}
}
