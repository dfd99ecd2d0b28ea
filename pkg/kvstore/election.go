package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// leadCheck is how often a leader checks its lock, and the pause after an error before the
// lock is asked for again.
const leadCheck = 2 * time.Second

// errLed ends the guard of a lock whose work is done.
var errLed = errors.New("the work is done")

// Lead elects a leader among all who call Lead with this path: it waits for the lock of the
// path, through lost connections, and calls lead with it. It returns what lead returned, or
// ctx's error. When the lock is lost it ends lead's context, waits for lead, and returns an
// error that is [ErrLockLeaseExpired]; somebody else may lead already before that, so every
// write of lead carries [Holding].
//
// A leader that dies is followed within its lock's TTL, one that returns at once.
func Lead(ctx context.Context, w Writer, path string, lead func(context.Context, *Lock) error) error {
	lock, err := elected(ctx, w, path)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	lock.Lasting()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return guard(ctx, w, lock) })
	g.Go(func() error { return cmp.Or(lead(ctx, lock), errLed) })
	if err := g.Wait(); !errors.Is(err, errLed) {
		return err
	}
	return nil
}

// LeadAgain calls [Lead] again each time the lock was lost. It returns ctx's error, or what
// lead returned for another reason. The log may be nil.
func LeadAgain(ctx context.Context, w Writer, path string, log *slog.Logger, lead func(context.Context, *Lock) error) error {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	for {
		log.Info("Waiting to lead", "lock", path)
		err := Lead(ctx, w, path, func(ctx context.Context, lock *Lock) error {
			log.Info("Leading", "lock", path)
			return lead(ctx, lock)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrLockLeaseExpired):
			log.Warn("No longer the leader; the written keys stay", "error", err)
		default:
			return err
		}
	}
}

// elected waits for the lock, also after a timeout or a lost connection.
func elected(ctx context.Context, w Writer, path string) (*Lock, error) {
	for {
		lock, err := w.Lock(ctx, path)
		switch {
		case err == nil:
			return lock, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			continue // somebody else leads
		}
		if err := waiting.Sleep(ctx, leadCheck); err != nil {
			return nil, err
		}
	}
}

// guard returns when the lock is lost, or when there was no answer for so long that
// somebody else may lead.
func guard(ctx context.Context, w Writer, lock *Lock) error {
	held := time.Now()
	check := time.NewTicker(leadCheck)
	defer check.Stop()
	for {
		select {
		case <-check.C:
		case <-lock.Lost():
			return lostBy(lock)
		case <-ctx.Done():
			return ctx.Err()
		}
		asked := time.Now()
		switch _, _, err := w.Get(ctx, lock.Key, Holding(lock)); {
		case err == nil:
			held = asked
		case errors.Is(err, ErrLockLeaseExpired):
			return err
		case time.Since(held) > lock.TTL:
			return fmt.Errorf("%w: %s: no answer for %s: %w", ErrLockLeaseExpired, lock.Path, lock.TTL, err)
		}
	}
}
