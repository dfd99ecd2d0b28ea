package ipcache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// maxHold is how many ops are applied while the lock is held once. Batches of 5,000 delayed lookups by up to 55 ms in
// measurements.
const maxHold = 256

// snapshotAge is the maximum age of the shared snapshot. It is shared because after a copy, the writer must copy the
// nodes of the trees that it changes.
const snapshotAge = 10 * time.Millisecond

// Cache is the merged view of all claims.
type Cache struct {
	mu   sync.RWMutex // guards core; a snapshot is also made with the write lock
	core *core
	// awaited is closed with the next change; nil when no goroutine waits. Guarded by mu, for writing.
	awaited chan struct{}
	left    chan struct{} // signals Run that there are reviews to do

	snapshot atomic.Pointer[Snapshot]
}

// New returns an empty cache with rules. With the zero value, claims that break a rule are noted, and the pod networks
// of the own nodes are the own networks.
func New(r Rules) *Cache {
	c := &Cache{core: newCore(), left: make(chan struct{}, 1)}
	c.core.networks.enforce = r.Enforce
	for _, o := range r.Own {
		o.Prefix = o.Prefix.Masked()
		c.core.networks.countOwn(o, +1)
	}
	c.snapshot.Store(c.core.copy(time.Time{}))
	return c
}

// patience is how many steps of the resulting reviews Apply does. [Cache.Run] and later changes do the rest.
const patience = 8

// Apply makes the changes visible, in their order. Readers may see a part of a long batch, never a part of an op. When
// it returns, the effects of a change of the own networks on the claims inside are visible too. Those of a change of a
// remote's networks may take longer when there are many (see [Cache.Run]).
func (c *Cache) Apply(ops []Op) {
	asked := false
	for len(ops) > 0 {
		n := min(len(ops), maxHold)
		asked = c.hold(ops[:n]) || asked
		ops = ops[n:]
	}
	// Without a new review, Apply does one step, so that all reviews are done even when Run is not used.
	for n, more, own := 0, true, true; more && (n == 0 || asked && (n < patience || own)); n++ {
		more, own = c.review()
	}
	c.leave()
}

// Run does the reviews that changes of networks have left, until ctx ends. It works at most half of the time, since it
// blocks other users of the lock. A hostile cluster that changes its networks all the time can therefore not block
// others. It must be called only once.
func (c *Cache) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.left:
		}
		for more := true; more; {
			start := time.Now()
			more, _ = c.review()
			if err := waiting.Sleep(ctx, time.Since(start)); err != nil {
				return err
			}
		}
	}
}

// leave signals Run that there are reviews to do.
func (c *Cache) leave() {
	c.mu.RLock()
	any := c.core.reviews.any()
	c.mu.RUnlock()
	if any {
		select {
		case c.left <- struct{}{}:
		default: // the signal is set already
		}
	}
}

// review does one step of the reviews. It reports whether there are more, and whether some of these were asked for by
// the own cluster.
func (c *Cache) review() (more, own bool) {
	c.mu.RLock()
	idle := !c.core.reviews.any()
	c.mu.RUnlock()
	if idle {
		return false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.core.revision
	more = c.core.resume()
	if c.core.revision != before {
		c.wake()
	}
	return more, c.core.reviews.own.any()
}

// hold applies ops while holding the lock once, and reports whether they have led to reviews.
func (c *Cache) hold(ops []Op) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, asked := c.core.revision, c.core.reviews.serial
	for _, op := range ops {
		c.core.apply(op)
	}
	if c.core.revision != before {
		c.wake()
	}
	return c.core.reviews.serial != asked
}

// Len returns the number of prefixes.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.winners.Len()
}

// Claims returns the number of claims.
func (c *Cache) Claims() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.claims
}

// Revision returns a number that grows with every visible change.
func (c *Cache) Revision() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.revision
}

// Snapshot returns a consistent view of all prefixes, at most 10 ms old. All readers share one.
func (c *Cache) Snapshot() *Snapshot {
	s := c.snapshot.Load()
	if time.Since(s.made) < snapshotAge || s.revision == c.Revision() {
		return s
	}
	// Copying marks the nodes of the trees, so it needs the write lock, like a change.
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.snapshot.Load(); s.revision != c.core.revision {
		s = c.core.copy(time.Now())
		c.snapshot.Store(s)
	}
	return s
}
