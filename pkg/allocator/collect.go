package allocator

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"
)

var errWithoutGC = errors.New("this allocator was made without garbage collection")

// RunGC does one round of garbage collection: mappings that nobody refers to,
// and that the round before found so at the same revision, are deleted, at most
// as fast as the limiter allows (nil: any). It returns what to pass to the next
// round. IDs outside the allocator's range are never touched.
func (a *Allocator) RunGC(ctx context.Context, limiter *rate.Limiter, stale StaleIDs) (StaleIDs, GCStats, error) {
	if a.options.withoutGC {
		return nil, GCStats{}, errWithoutGC
	}
	from, to := a.options.idRange()
	return a.backend.RunGC(ctx, limiter, stale, from, to)
}

// RunLocksGC does one round of the same for locks: what the round before found
// held by the same holder is deleted. It returns what to pass to the next round.
func (a *Allocator) RunLocksGC(ctx context.Context, stale StaleLocks) (StaleLocks, error) {
	if a.options.withoutGC {
		return nil, errWithoutGC
	}
	return a.backend.RunLocksGC(ctx, stale)
}

// ListIDs returns the IDs that have a mapping in the store, in ascending order, whatever
// the allocator's range is.
func (a *Allocator) ListIDs(ctx context.Context) ([]uint64, error) { return a.backend.ListIDs(ctx) }

// DeleteID deletes the mapping of an ID that no node uses, at once; one that is in use is
// an [ErrIDInUse]. It reports false when there is none. IDs outside the allocator's range
// are never touched.
func (a *Allocator) DeleteID(ctx context.Context, id uint64) (deleted bool, err error) {
	if from, to := a.options.idRange(); id < from || id > to {
		return false, fmt.Errorf("deleting %d: it is not between %d and %d", id, from, to)
	}
	a.mu.Lock()
	used := a.core.byID[id] != nil
	a.mu.Unlock()
	switch {
	case a.options.withoutGC:
		return false, errWithoutGC
	case used:
		return false, fmt.Errorf("deleting %d: %w, this one", id, ErrIDInUse)
	}
	return a.backend.DeleteID(ctx, id)
}

// DeleteAllKeys deletes all there is in the store: mappings, references and locks, of every node.
func (a *Allocator) DeleteAllKeys(ctx context.Context) error { return a.backend.DeleteAllKeys(ctx) }
