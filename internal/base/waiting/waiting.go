// Package waiting waits for common things: a time, the end of a context, a moment of a schedule, a signal, a lock
// with a name, the end of several goroutines, or the success of an action.
package waiting

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sleep waits, or returns the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Together runs all of these at once, and waits for them. The first error ends the context of the
// others, and is returned.
func Together(ctx context.Context, runs ...func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range runs {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}
