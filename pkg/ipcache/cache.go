package ipcache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// maxHold is how many ops are done under one hold of the lock. Batches of 5,000
// were seen to delay lookups by up to 55 ms.
const maxHold = 256

// snapshotAge is how old the shared snapshot may be: a copy costs the writer
// the nodes that it changes afterwards.
const snapshotAge = 10 * time.Millisecond

// Cache is the merged view of all claims.
type Cache struct {
	mu   sync.RWMutex // guards core, for writing also when a snapshot is made
	core *core
	// awaited is closed with the next change; nil when nobody waits. Guarded by mu, for writing.
	awaited chan struct{}
	left    chan struct{} // tells Run that there is something to do

	snapshot atomic.Pointer[Snapshot]
}

// New returns an empty cache with rules. Without any it notes which claims break one, and
// the pod networks of the own nodes are the own cluster's.
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

// patience is how often a change goes on with the reviews that it has led to. What is
// left then is up to [Cache.Run], and to other changes.
const patience = 8

// Apply makes the changes visible, in their order. Readers may see a part of a long batch, never a
// part of an op. When it returns, what a change of the own networks means for the claims inside is
// visible too; what one of a remote's means may take longer when that is much (see [Cache.Run]).
func (c *Cache) Apply(ops []Op) {
	asked := false
	for len(ops) > 0 {
		n := min(len(ops), maxHold)
		asked = c.hold(ops[:n]) || asked
		ops = ops[n:]
	}
	// Others do one step, so that all is done also where nobody runs Run.
	for n, more, own := 0, true, true; more && (n == 0 || asked && (n < patience || own)); n++ {
		more, own = c.review()
	}
	c.leave()
}

// Run judges again what changes of networks have left to be judged, until ctx ends. It works half
// of the time at most, since it takes the lock from others. A hostile cluster that changes its
// networks all the time thereby takes nobody's turn. It is called once.
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

// leave tells Run that there is something to do.
func (c *Cache) leave() {
	c.mu.RLock()
	any := c.core.reviews.any()
	c.mu.RUnlock()
	if any {
		select {
		case c.left <- struct{}{}:
		default: // it knows already
		}
	}
}

// review goes on judging again what has to be, and reports whether there is more, and
// whether the own cluster asked for it.
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

// hold does ops under one hold of the lock, and reports whether something has to be
// judged again for them.
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

// Len is the number of prefixes.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.winners.Len()
}

// Claims is the number of claims.
func (c *Cache) Claims() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.claims
}

// Revision grows with every change that a reader could see.
func (c *Cache) Revision() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.revision
}

// Snapshot returns a consistent view of all prefixes. All readers share one;
// what it shows is at most 10 ms old.
func (c *Cache) Snapshot() *Snapshot {
	s := c.snapshot.Load()
	if time.Since(s.made) < snapshotAge || s.revision == c.Revision() {
		return s
	}
	// Copying marks the nodes of the trees, so it excludes lookups as a change does.
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.snapshot.Load(); s.revision != c.core.revision {
		s = c.core.copy(time.Now())
		c.snapshot.Store(s)
	}
	return s
}
