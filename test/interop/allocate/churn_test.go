package allocate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// The size of the test with all events at once.
const (
	keys    = 2000
	each    = 4 // allocators of each side
	workers = 8 // of each allocator
	faults  = 8
	enough  = 3 * keys // allocations, unless the time is over before
)

// longest is how long an allocation may take. An allocator that died with a lock, or in its queue, makes the others wait until
// its lease ends, and a restarted etcd gives every lease its whole TTL again: each fault may add one lease TTL.
const longest = faults * leaseTTL

// churn is allocators of both sides on one etcd, and their current work.
type churn struct {
	*testing.T
	server *etcdtest.Process
	seats  map[string][]*seat // by side
	uses   uses
	seed   uint64
	calls  atomic.Int64
}

func newChurn(t *testing.T) *churn {
	t.Helper()
	c := &churn{
		T: t, server: etcdtest.StartProcess(t), seats: map[string][]*seat{},
		uses: uses{of: map[string]map[*seat]*use{}, wrong: map[string][]string{}}, seed: interop.Seed(t),
	}
	for _, side := range sides {
		for i := range each {
			name := fmt.Sprintf("%s-%d", side, i+1)
			c.seats[side] = append(c.seats[side], &seat{side: side, name: name, node: start(t, side, c.server.Endpoint(), name)})
		}
	}
	return c
}

// work allocates and releases keys at random until ctx ends.
func (c *churn) work(ctx context.Context, s *seat, rnd *rand.Rand) error {
	for ctx.Err() == nil {
		key := fmt.Sprintf("k8s:n=%d;", rnd.IntN(keys))
		if rnd.IntN(20) == 0 {
			key = ownKey(s.name)
		}
		n, life := s.now()
		if n == nil {
			_ = waiting.Sleep(ctx, 50*time.Millisecond) // until the seat is taken again
			continue
		}
		err := c.hold(s, n, life, key, time.Duration(rnd.IntN(20))*time.Millisecond)
		if _, now := s.now(); err == nil || now != life {
			continue
		}
		if s.side == "ours" {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// hold allocates a key, keeps it for a while and releases it.
func (c *churn) hold(s *seat, n node, life int, key string, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	began := time.Now()
	id, err := n.acquire(ctx, key)
	if took := time.Since(began); took > leaseTTL {
		c.Logf("%s waited %s for %s: %v", s.name, took.Round(time.Millisecond), key, err)
	}
	if err != nil {
		return err
	}
	c.calls.Add(1)
	c.uses.begin(s, life, key, id)
	if err := waiting.Sleep(ctx, keep); err != nil {
		return err
	}
	c.uses.end(s, life, key)
	return n.release(ctx, key)
}

// collect makes rounds of garbage collection until ctx ends. Deletions that fail
// while etcd is away are made in a later round.
func (c *churn) collect(ctx context.Context, side string, n node) error {
	locks := time.NewTicker(10 * time.Second)
	defer locks.Stop()
	for waiting.Sleep(ctx, 300*time.Millisecond) == nil {
		own := ownKey(side + "-gc") // for the history
		if _, err := n.acquire(ctx, own); err == nil {
			_ = n.release(ctx, own)
		}
		_, _ = n.gc(ctx)
		select {
		case <-locks.C:
			_ = n.locksGC(ctx)
		default:
		}
	}
	return nil
}

// fault makes one fault of the etcd or of a node.
func (c *churn) fault(i int) {
	switch i % 4 {
	case 0:
		c.server.Freeze(c)
		_ = waiting.Sleep(c.Context(), 2*time.Second)
		c.server.Thaw(c)
	case 1:
		c.server.Kill(c)
		c.server.Restart(c)
	default: // one side's and the other's, each time another one
		of := c.seats[sides[i%2]]
		s := of[i/4%len(of)]
		s.leave(&c.uses)
		s.sit(start(c, s.side, c.server.Endpoint(), s.name))
	}
}

// run lets all nodes work for a while, with a fault every few seconds, and collects garbage until the last of them has
// ended: a lock that a node of Cilium left when the etcd was killed ends only when it is collected, as long as the node
// lives, and others wait for it. At the end half of the nodes are removed while they work.
func (c *churn) run(collectors map[string]node) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	worked, collected := context.WithCancel(c.Context())
	defer collected()
	var working, collecting errgroup.Group
	stream := uint64(0)
	for _, side := range sides {
		for _, s := range c.seats[side] {
			for range workers {
				rnd := rand.New(rand.NewPCG(c.seed, stream))
				stream++
				working.Go(func() error { return c.work(ctx, s, rnd) })
			}
		}
	}
	for side, n := range collectors {
		collecting.Go(func() error { return c.collect(worked, side, n) })
	}
	for i := range faults {
		if waiting.Sleep(ctx, 3*time.Second) == nil {
			c.fault(i)
		}
	}
	longer, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	for c.calls.Load() < enough && waiting.Sleep(longer, 100*time.Millisecond) == nil {
	}
	for _, side := range sides {
		for i, s := range c.seats[side] {
			if i%2 == 0 {
				s.leave(&c.uses)
			}
		}
	}
	cancel()
	if err := working.Wait(); err != nil {
		c.Error(err)
	}
	collected()
	_ = collecting.Wait() // collect has no errors
}

// TestTheGuaranteesHold: four allocators of each side use 2,000 keys concurrently, while the etcd is frozen and killed,
// nodes of both sides end and start again, and the collectors of both sides run. At no revision does a key have two
// IDs, or an ID two keys, or is a used mapping deleted. When the dead nodes' leases have ended, two rounds of
// collection leave nothing behind.
func TestTheGuaranteesHold(t *testing.T) {
	t.Parallel()
	c := newChurn(t)
	theirGC, ourGC := startTheirs(t, c.server.Endpoint(), "theirs-gc"), startOurs(t, c.server.Endpoint(), "ours-gc")
	c.run(map[string]node{"theirs": theirGC, "ours": ourGC})
	for _, side := range sides {
		for _, s := range c.seats[side] {
			s.leave(&c.uses)
		}
	}
	theirGC.gone()
	c.nothingIsLeft(ourGC)
	h := replay(t, c.server.Client(t))
	h.judge(t)
	for key, texts := range c.uses.wrong {
		if !h.spoilt(key) {
			t.Error(texts)
		}
	}
	if c.calls.Load() < keys/4 || h.made < keys/8 {
		t.Errorf("hardly anything was tried: %d allocations, %d mappings", c.calls.Load(), h.made)
	}
	trial := interop.Trial{
		Name: "Four allocators of each side on one etcd", Release: interop.Newest,
		Figures: append([]interop.Figure{
			figure("keys", keys), figure("allocations", int(c.calls.Load())), figure("faults", faults),
		}, h.figures()...),
	}
	t.Logf("%+v", trial)
	interop.KeepTrial(t, trial)
}

// nothingIsLeft checks the remains of dead nodes: when their leases have ended there is neither a reference nor a lock,
// and after two rounds of collection no mapping.
func (c *churn) nothingIsLeft(collector *ours) {
	c.Helper()
	client := c.server.Client(c)
	until(c, "the leases of the dead to end", func() bool { return count(c, client, "value/")+count(c, client, "locks/") == 0 })
	collector.stale = nil
	for range 2 {
		if _, err := collector.gc(c.Context()); err != nil {
			c.Fatal(err)
		}
	}
	if n := count(c, client, "id/"); n != 0 {
		c.Errorf("%d mappings are left after two rounds of collection", n)
	}
}
