package operate

import (
	"context"
	"errors"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// collector is the garbage collection's own access to the identities.
type collector struct {
	*modes.Backend
	// published counts the addresses of each identity when the round began.
	published map[uint64]int
}

// collector returns an access that deletes nothing once this process no longer leads.
func (o *Operator) collector(lock *kvstore.Lock) (*collector, error) {
	c := o.Allocation
	c.Writer, c.Node, c.Keys, c.Log, c.Metrics = o.Writer, "gc", identity.Key{}, o.Log, o.Collected
	c.Registerer = nil // a term is shorter than the program
	of := &collector{}
	c.Collect = &modes.Collect{
		Lock:    lock,
		Leading: func(ctx context.Context) error { return o.leading(ctx, lock) },
		Kept:    func(id uint64) bool { return of.published[id] > 0 },
	}
	var err error
	of.Backend, err = modes.New(c)
	return of, err
}

// leading reports whether this is still the leader's lock. The error is
// [kvstore.ErrLockLeaseExpired] when it is not; another one proves nothing.
func (o *Operator) leading(ctx context.Context, lock *kvstore.Lock) error {
	_, _, err := o.Writer.Get(ctx, lock.Key, kvstore.Holding(lock))
	return err
}

// collect deletes the identities that two rounds find unused.
func (o *Operator) collect(ctx context.Context, lock *kvstore.Lock) error {
	if o.GCInterval == 0 {
		return nil
	}
	b, err := o.collector(lock)
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(rate.Inf, 1)
	if o.GCPerMinute > 0 {
		limiter = rate.NewLimiter(rate.Limit(float64(o.GCPerMinute)/60), o.GCPerMinute)
	}
	if o.Source != nil { // only then it is known whether identities are objects of Kubernetes
		if err := o.Source.CiliumIdentities.WaitListed(ctx); err != nil {
			return err
		}
		if err := o.Source.WaitWhole(ctx); err != nil {
			return err
		}
	}
	var stale allocator.StaleIDs
	said := false // of this term
	for {
		err := o.leading(ctx, lock)
		if errors.Is(err, kvstore.ErrLockLeaseExpired) {
			return err
		}
		switch {
		case err != nil:
		case o.Allocation.Mode != modes.CRD && o.Source != nil && o.Source.CiliumIdentities.Len() > 0:
			// The deletion of such an object ends the identity, and no node has references to it. Numbers that
			// allocators gave away before Cilium was there stay: a mapping alone does not show whether its object is
			// about to come from the watch, and an unused mapping harms only a CiliumIdentity with its number
			// (mappings).
			if stale = nil; !said {
				o.Log.Info("No collection of unused identities as long as there are CiliumIdentities. Identities that agents allocated before stay in the kvstore")
			}
			said = true
		default:
			// A lock that is lost here may be an identity's own: that ends this round,
			// and the next look reports whether it was the leader's.
			stale, err = o.round(ctx, b, limiter, stale)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.Log.Warn("Skipped this collection of unused identities", "error", err)
		}
		o.Report("identities", err)
		if err := waiting.Sleep(ctx, o.GCInterval); err != nil {
			return err
		}
	}
}

// round is one of these rounds.
func (o *Operator) round(ctx context.Context, b *collector, limiter *rate.Limiter, stale allocator.StaleIDs) (allocator.StaleIDs, error) {
	contents, err := identity.Read(ctx, o.Writer, identity.OwnPlace(), identity.Addresses)
	if err != nil {
		return stale, err
	}
	// Of the references that agents hold as objects of Kubernetes the kvstore knows
	// nothing: then each identity that has an address stays by itself.
	if b.published = contents.Published(); !o.Allocation.Mode.InKubernetes() {
		if err := contents.Collectable(o.Identities); err != nil {
			return nil, err
		}
	}
	first, last := o.Identities.Range()
	next, stats, err := b.RunGC(ctx, limiter, stale, uint64(first), uint64(last))
	if stats.Deleted > 0 || len(next) > 0 {
		o.Log.Info("Collected identities", "deleted", stats.Deleted, "alive", stats.Alive, "unused", len(next))
	}
	return next, err
}

// collectLocks deletes the locks whose holder two looks find to be the same. Its
// writes rely on the leader's lock alone.
func (o *Operator) collectLocks(ctx context.Context, lock *kvstore.Lock) error {
	if o.LocksGCInterval == 0 {
		return nil
	}
	b, err := o.collector(lock)
	if err != nil {
		return err
	}
	var stale allocator.StaleLocks
	for {
		var err error
		stale, err = b.RunLocksGC(ctx, stale)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kvstore.ErrLockLeaseExpired):
			return err
		case err != nil:
			o.Log.Warn("Skipped this collection of abandoned locks", "error", err)
		}
		o.Report("locks", err)
		if err := waiting.Sleep(ctx, o.LocksGCInterval); err != nil {
			return err
		}
	}
}
