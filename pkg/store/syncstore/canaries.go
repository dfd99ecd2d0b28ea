package syncstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// CanariesParams are the parameters of [Canaries].
type CanariesParams struct {
	// Dir is their prefix, [wire.SyncedDir] of the cluster.
	Dir    string
	Writer kvstore.Writer
	// Holding returns the lock under which they are written; nil for none.
	Holding func() *kvstore.Lock
	// Log receives the log messages; nil discards them.
	Log *slog.Logger
}

// Canaries are the keys that show readers that all other keys are present (spec wire.md §1.9). A canary is
// written once everything that its Sync wanted at the time when the canary was due is known to be in the server
// that answers now. It is written again, under the same condition, when it is missing. So it is never written
// before the keys. Later changes do not delay it.
type Canaries struct {
	p   CanariesParams
	log *slog.Logger

	running  *semaphore.Weighted // held by Run and Drain
	follower follow.Follower

	mu      sync.Mutex
	all     []*canary     // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced with each change of a canary, or of their number
}

type canary struct {
	name string
	of   *Sync // nil: it depends on no keys

	// Guarded by Canaries.mu.
	written bool  // in this Run
	present bool  // in the kvstore, and tied to a lease of ours
	rev     int64 // of its last write or event; 0 from the start of a list until the list returns it
}

// NewCanaries returns an empty set of canaries.
func NewCanaries(p CanariesParams) *Canaries {
	log := cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	return &Canaries{
		p: p, log: log, running: semaphore.NewWeighted(1), changed: make(chan struct{}),
		follower: follow.Follower{Log: log},
	}
}

// Add adds a canary of this name below the directory, for the keys of a Sync; with a nil Sync it is written at
// once. It may be called at any time.
func (c *Canaries) Add(name string, s *Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, &canary{name: name, of: s})
	c.notify()
}

// notify wakes the goroutines that wait for a change. The lock is held.
func (c *Canaries) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Run writes the canaries and keeps them, until ctx ends or a lock is lost. The error for a lost lock wraps
// [kvstore.ErrLockLeaseExpired]. Run writes each canary once even if it is already present.
func (c *Canaries) Run(ctx context.Context) error {
	if err := c.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.running.Release(1)
	c.mu.Lock()
	for _, one := range c.all {
		one.written = false
	}
	c.mu.Unlock()
	c.p.Writer.OnLeaseExpired(c.p.Dir, c.leasesLost)
	defer c.p.Writer.OnLeaseExpired(c.p.Dir, nil)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(guard.Func(func() error {
		return c.follower.Sessions(ctx, canaryKeeper{c}, follow.Session{Client: c.p.Writer, Prefix: c.p.Dir})
	}))
	g.Go(guard.Func(func() error { return c.keepAll(ctx, g) }))
	return g.Wait()
}

func (c *Canaries) keepAll(ctx context.Context, g *errgroup.Group) error {
	for n := 0; ; {
		c.mu.Lock()
		added, changed := c.all[n:], c.changed
		n = len(c.all)
		c.mu.Unlock()
		for _, one := range added {
			g.Go(guard.Func(func() error { return c.keep(ctx, one) }))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Canaries) keep(ctx context.Context, one *canary) error {
	pause := waiting.Pauses(5*time.Millisecond, follow.RetryMax)
	for {
		if err := c.awaitMissing(ctx, one); err != nil {
			return err
		}
		err := c.write(ctx, one)
		switch {
		case err == nil:
			pause.Reset()
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kvstore.ErrLockLeaseExpired):
			return fmt.Errorf("writing the canary %s%s: %w", c.p.Dir, one.name, err)
		}
		c.log.Debug("Cannot write a canary yet", "key", c.p.Dir+one.name, "error", err)
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

func (c *Canaries) awaitMissing(ctx context.Context, one *canary) error {
	for {
		c.mu.Lock()
		present, changed := one.written && one.present, c.changed
		c.mu.Unlock()
		if !present {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Canaries) write(ctx context.Context, one *canary) error {
	if one.of != nil {
		if err := one.of.prove(ctx); err != nil {
			return err
		}
	}
	res, err := c.p.Writer.Put(ctx, c.p.Dir+one.name, []byte(time.Now().Format(time.RFC3339)), append(holding(c.p.Holding), kvstore.Leased())...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one.written = true
	if res.At.Revision > one.rev { // else something newer is known
		one.present, one.rev = true, res.At.Revision
	}
	return nil
}

// Drain deletes the whole directory and forgets all canaries. It waits for a Run to end first.
func (c *Canaries) Drain(ctx context.Context) error {
	if err := c.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.running.Release(1)
	if _, err := c.p.Writer.DeletePrefix(ctx, c.p.Dir, holding(c.p.Holding)...); err != nil {
		return fmt.Errorf("withdrawing the canaries %s: %w", c.p.Dir, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
	return nil
}

func (c *Canaries) change(f func(one *canary)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		f(one)
	}
	c.notify()
}

func (c *Canaries) leasesLost(keys []string) {
	c.change(func(one *canary) {
		if _, is := slices.BinarySearch(keys, c.p.Dir+one.name); is {
			one.present = false
		}
	})
}

type canaryKeeper struct{ *Canaries } // implements [follow.Keeper]

func (c canaryKeeper) Begin() { c.change(func(one *canary) { one.rev = 0 }) }

func (c canaryKeeper) Page(p kvstore.Page) {
	for i := range p.Items {
		c.Apply(kvstore.Batch{Events: []kvstore.Event{{KeyValue: p.Items[i]}}})
	}
}

func (c canaryKeeper) Done(at kvstore.Position) {
	c.change(func(one *canary) {
		if one.rev == 0 {
			one.present, one.rev = false, at.Revision
		}
	})
}

func (c canaryKeeper) Apply(b kvstore.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		c.change(func(one *canary) {
			if c.p.Dir+one.name == string(e.Key) && e.ModRevision > one.rev {
				one.rev = e.ModRevision
				one.present = e.Type == kvstore.EventPut && c.p.Writer.Owns(e.Lease)
			}
		})
	}
}

// Proofs returns none: there are few canaries, so a list is cheap.
func (canaryKeeper) Proofs() []follow.Proof { return nil }

func (canaryKeeper) Agrees(follow.Proof, kvstore.Past) bool { return false }
