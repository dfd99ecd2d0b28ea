package allocator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// jobTimeout bounds one try of a job (spec wire.md §5).
	jobTimeout = 10 * time.Second
	// jobsAtOnce is how many jobs run in the background at the same time.
	jobsAtOnce = 8
)

// Release ends one use of the key. The last Release deletes this node's reference. When the deletion fails, or other
// work on the key is in progress, the reference is deleted in the background, and the release still succeeds. The
// error is [ErrIdentityNonExistent] for a key that is not in use.
func (a *Allocator) Release(ctx context.Context, key Key) (lastUse bool, err error) {
	text := key.GetKey()
	a.mu.Lock()
	lastUse, err = a.core.release(text, time.Now())
	var j job
	mine := false
	if lastUse {
		if j, mine = a.core.take(text); mine {
			a.beginTurn(text)
		}
	}
	a.mu.Unlock()
	if lastUse {
		a.options.log.Debug("Released the last use of a key on this node", "key", key)
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("releasing %s: %w", key, err)
	case mine:
		a.perform(ctx, j)
	}
	return lastUse, nil
}

// runJobs runs the jobs that are due, and at each sync interval makes a refresh due for all keys in use.
func (a *Allocator) runJobs(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(jobsAtOnce)
	defer func() { _ = g.Wait() }() // the jobs return no errors
	refresh := time.NewTicker(a.options.syncInterval)
	defer refresh.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		for _, j := range a.nextJobs(wake) {
			g.Go(func() error {
				a.perform(ctx, j)
				return nil
			})
		}
		select {
		case <-wake.C:
		case <-a.jobs:
		case <-refresh.C:
			a.refreshAll()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextJobs begins jobs, and sets the timer to the time when the next one is due.
func (a *Allocator) nextJobs(wake *time.Timer) []job {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	jobs := a.core.next(now, jobsAtOnce)
	for _, j := range jobs {
		a.beginTurn(j.text)
	}
	wake.Stop()
	if at, ok := a.core.wake(now); ok {
		wake.Reset(at.Sub(now))
	}
	return jobs
}

func (a *Allocator) refreshAll() { a.with(func(c *core) { c.refreshAll(time.Now()) }) }

func (a *Allocator) perform(ctx context.Context, j job) {
	try, cancel := context.WithTimeout(ctx, jobTimeout)
	err := a.do(try, j)
	cancel()
	a.with(func(c *core) {
		c.done(j.text, err != nil, time.Now(), rand.Float64())
		a.endTurn(j.text, nil)
	})
	a.jobs.Notify()
	a.options.metrics.job(j.kind, err)
	switch {
	case err != nil && ctx.Err() == nil:
		a.reportAtMost(a.failures, slog.LevelWarn, "Work on a key failed, trying again", "job", j.kind, "key", j.key, "id", j.id, "error", err)
	case err == nil && (j.kind == jobPutBack || j.kind == jobRestore):
		a.report(slog.LevelInfo, "A mapping in use seemed to be missing or changed; it is correct now", "key", j.key, "id", j.id)
	}
}

func (a *Allocator) do(ctx context.Context, j job) error {
	switch j.kind {
	case jobDrop:
		return a.backend.Release(ctx, j.id, j.key)
	case jobRefresh, jobPutBack: // the cache may not know yet that the mapping is missing
		return a.putBack(ctx, j)
	default:
		return a.restore(ctx, j)
	}
}

// putBack works under the key's lock: while mapping and reference are missing, another node would give the key a new
// ID. If another node has done so, this node takes that ID where possible.
func (a *Allocator) putBack(ctx context.Context, j job) error {
	lock, err := a.backend.Lock(ctx, j.key)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	moved, err := a.move(ctx, j, lock)
	if errors.Is(err, errors.ErrUnsupported) {
		var other uint64
		if other, err = a.backend.Get(ctx, j.key, lock); err == nil && other != NoID && other != j.id {
			a.report(slog.LevelWarn, "Another node has a key under another ID, since mapping and reference were gone for a while", "key", j.key, "id", j.id, "other", other)
		}
	}
	if moved || err != nil {
		return err
	}
	return a.backend.UpdateKey(ctx, j.id, j.key, false, lock)
}

// restore overwrites a mapping that others have altered, unless the key that it has now is in use with this ID.
func (a *Allocator) restore(ctx context.Context, j job) error {
	lock, err := a.backend.Lock(ctx, j.instead)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	used, err := a.backend.Get(ctx, j.instead, lock)
	switch {
	case err != nil:
		return err
	case used == j.id:
		return fmt.Errorf("the mapping says %s, and that is in use: two keys have one ID", j.instead)
	}
	restored, err := a.backend.Restore(ctx, j.id, j.key, j.instead, lock)
	switch {
	case err != nil:
		return err
	case !restored:
		return errors.New("the mapping has changed again")
	}
	return a.backend.UpdateKey(ctx, j.id, j.key, false, nil)
}

// report logs a message about one key or ID. When there are too many, the level is debug.
func (a *Allocator) report(level slog.Level, msg string, args ...any) {
	a.reportAtMost(a.reports, level, msg, args...)
}

func (a *Allocator) reportAtMost(limit *rate.Limiter, level slog.Level, msg string, args ...any) {
	if !limit.Allow() {
		level = slog.LevelDebug
	}
	a.options.log.Log(context.Background(), level, msg, args...)
}
