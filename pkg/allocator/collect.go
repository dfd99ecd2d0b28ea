package allocator

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"
)

var errWithoutGC = errors.New("this allocator was made without garbage collection")

// RunGC does one round of garbage collection. It deletes mappings that have no reference, and that the previous round
// found without one at the same revision. It deletes at most as fast as the limiter allows (nil: no limit). It
// returns the argument for the next round. IDs outside the allocator's range are never touched.
func (a *Allocator) RunGC(ctx context.Context, limiter *rate.Limiter, stale StaleIDs) (StaleIDs, GCStats, error) {
	if a.options.withoutGC {
		return nil, GCStats{}, errWithoutGC
	}
	from, to := a.options.idRange()
	return a.backend.RunGC(ctx, limiter, stale, from, to)
}

// RunLocksGC does one round of garbage collection of locks. It deletes the locks that the previous round found with
// the same holder. It returns the argument for the next round.
func (a *Allocator) RunLocksGC(ctx context.Context, stale StaleLocks) (StaleLocks, error) {
	if a.options.withoutGC {
		return nil, errWithoutGC
	}
	return a.backend.RunLocksGC(ctx, stale)
}

// ListIDs returns the IDs that have a mapping in the store, in ascending order, also those outside the allocator's
// range.
func (a *Allocator) ListIDs(ctx context.Context) ([]uint64, error) { return a.backend.ListIDs(ctx) }

// DeleteID deletes the mapping of an ID at once. For an ID that a node uses, the error is [ErrIDInUse]. It reports
// false when there is no mapping. IDs outside the allocator's range are never touched.
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

// DeleteAllKeys deletes everything in the store: the mappings, references and locks of every node.
func (a *Allocator) DeleteAllKeys(ctx context.Context) error { return a.backend.DeleteAllKeys(ctx) }
