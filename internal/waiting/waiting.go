// Package waiting has what many wait for: a while, or the end of a context, a moment of a schedule, a
// signal, or a lock of a name.
package waiting

import (
	"context"
	"time"
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
