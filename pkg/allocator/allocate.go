package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// errLost is the error of an attempt whose ID belonged to another key, or whose mapping was deleted.
var errLost = errors.New("the ID was taken by another key, or its mapping was deleted")

// Allocate returns the ID of the key and counts one use on this node, which one Release ends. For a key that is in
// use here, it needs no operation on the store. For any other key, it finds or creates the ID under the key's lock,
// with as many attempts as the options allow. It waits for the first list.
//
// isNew reports that this call created the mapping, as far as it can know. firstUse reports that the key was not in
// use on this node. Concurrent calls for one key do the work once. When it fails, all calls that waited for it fail.
// When ctx ends, the call returns at once and holds nothing; then another waiting call does the work.
func (a *Allocator) Allocate(ctx context.Context, key Key) (id uint64, isNew, firstUse bool, err error) {
	text := key.GetKey()
	a.mu.Lock()
	id, ok := a.core.hit(text)
	a.mu.Unlock()
	if ok {
		a.options.metrics.hits.Inc()
		return id, false, false, nil
	}
	if a.forGC {
		return NoID, false, false, errors.New("an allocator for garbage collection does not allocate")
	}
	if err := a.WaitForInitialSync(ctx); err != nil {
		return NoID, false, false, fmt.Errorf("allocating an ID for %s: %w", key, err)
	}
	id, whose, err := a.takeTurn(ctx, key, text)
	switch {
	case err != nil:
		err = fmt.Errorf("allocating an ID for %s: %w", key, err)
	case whose == turnInUse:
		a.options.metrics.hits.Inc()
		return id, false, false, nil
	default:
		id, isNew, err = a.allocate(ctx, key, text)
	}
	a.options.metrics.allocated(isNew, err)
	return id, isNew, err == nil, err
}

// takeTurn waits until the key is in use or this call has the turn to work on it.
func (a *Allocator) takeTurn(ctx context.Context, key Key, text string) (uint64, turn, error) {
	for {
		a.mu.Lock()
		id, whose := a.core.begin(key, text)
		if whose == turnMine {
			a.beginTurn(text)
		}
		other := a.turns[text]
		a.mu.Unlock()
		if whose != turnWait {
			return id, whose, nil
		}
		select {
		case <-other.done:
			if other.err != nil {
				return NoID, turnWait, other.err
			}
		case <-a.stopped:
			return NoID, turnWait, ErrStopped
		case <-ctx.Done():
			return NoID, turnWait, ctx.Err()
		}
	}
}

// allocate makes attempts until one succeeds, and ends the turn.
func (a *Allocator) allocate(ctx context.Context, key Key, text string) (id uint64, isNew bool, err error) {
	var last error
	for n := range a.options.maxAttempts {
		if n > 0 {
			err = a.pause(ctx, n)
		}
		if err == nil {
			a.options.metrics.attempts.Inc()
			id, isNew, last = a.attempt(ctx, key, text)
			if last == nil {
				return id, isNew, nil
			}
			err = ctx.Err()
		}
		if err != nil || errors.Is(last, ErrNoFreeID) {
			break
		}
		a.options.log.Debug("An attempt to allocate an ID failed", "key", key, "attempt", n+1, "error", last)
	}
	switch {
	case err != nil && !errors.Is(last, err):
		err = fmt.Errorf("allocating an ID for %s: %w; the last attempt: %w", key, err, last)
	case err != nil || errors.Is(last, ErrNoFreeID):
		err = fmt.Errorf("allocating an ID for %s: %w", key, last)
	default:
		err = fmt.Errorf("allocating an ID for %s: all %d attempts failed, the last one: %w", key, a.options.maxAttempts, last)
	}
	a.abandon(ctx, text, err)
	return NoID, false, err
}

// abandon ends a turn that did not lead to an ID. Calls that waited for it fail as well, unless the reason was the
// end of this caller's own context.
func (a *Allocator) abandon(ctx context.Context, text string, err error) {
	if ctx.Err() != nil {
		err = nil
	}
	a.with(func(c *core) {
		c.abandon(text, time.Now())
		a.endTurn(text, err)
	})
	a.jobs.Notify()
}

// attempt tries once to get an ID for the key, under its lock. When it succeeds, it ends the turn (spec wire.md §5).
func (a *Allocator) attempt(ctx context.Context, key Key, text string) (id uint64, isNew bool, err error) {
	lock, err := a.backend.Lock(ctx, key)
	if err != nil {
		return NoID, false, err
	}
	defer lock.Unlock()
	referenced, err := a.backend.Get(ctx, key, lock)
	if err == nil && referenced == NoID {
		err = a.backend.CatchUp(ctx, lock)
	}
	if err != nil {
		return NoID, false, err
	}
	var try candidate
	a.with(func(c *core) { try, err = c.candidate(text, referenced) })
	if err != nil {
		return NoID, false, err
	}
	if try.create {
		// When the ID is taken, an earlier attempt whose answer was lost may have created this mapping.
		// AcquireReference finds out.
		if isNew, err = a.backend.AllocateID(ctx, try.id, key, lock); err != nil {
			return NoID, false, err
		}
	}
	held, err := a.backend.AcquireReference(ctx, try.id, key, lock)
	if err != nil {
		if !errors.Is(err, kvstore.ErrLockLeaseExpired) {
			a.with(func(c *core) { c.unsure(text, try.id) })
		}
		return NoID, false, err
	}
	if !a.concluded(text, try, held) {
		return NoID, false, fmt.Errorf("%w: %d", errLost, try.id)
	}
	return try.id, isNew, nil
}

// concluded records the result for the candidate. If it became the key's ID, concluded ends the turn and reports
// true.
func (a *Allocator) concluded(text string, tried candidate, held bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !held {
		a.core.refused(text, tried)
		return false
	}
	if !a.core.used(text, tried.id, time.Now()) {
		return false
	}
	a.endTurn(text, nil)
	a.jobs.Notify()
	return true
}
