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

// leadCheck is the interval at which a leader checks its lock, and the pause after an error
// before the next request for the lock.
const leadCheck = 2 * time.Second

// errLed ends guard when lead has returned without an error.
var errLed = errors.New("the work is done")

// Lead elects a leader among all processes that call Lead with this path: it waits for the lock of
// the path, through lost connections, and calls lead with it. It returns the error of lead, or
// ctx's error. When the lock is lost, Lead ends lead's context, waits for lead, and returns an
// error that is [ErrLockLeaseExpired]. Another process may lead before this one has noticed the
// loss, so every write of lead needs [Holding].
//
// After the crash of a leader the next one leads within the lock's TTL; after lead returns, at once.
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

// LeadAgain calls [Lead] again each time the lock was lost. It returns ctx's error, or the result
// of lead if lead ended for another reason. The log may be nil.
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
			continue // another process leads
		}
		if err := waiting.Sleep(ctx, leadCheck); err != nil {
			return nil, err
		}
	}
}

// guard returns when the lock is lost, or when etcd has not answered for the lock's TTL:
// then another process may lead.
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
