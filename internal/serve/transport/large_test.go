package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type sized int

func (s sized) Cost() int { return int(s) }

// TestLargeObjectsTakeTurns: a limited number is written at once, small objects never wait, and a slow reader is
// aborted when others wait.
func TestLargeObjectsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLarge(16 << 20)
		const mib = 1 << 20
		var running, aborted, done atomic.Int32
		slow := func(size sized) {
			gone := make(chan struct{})
			err := l.While(t.Context(), size, func() {
				if aborted.Add(1) == 1 {
					close(gone)
				}
			}, func() error {
				running.Add(1)
				defer running.Add(-1)
				<-gone // it reads nothing
				return errors.New("gone")
			})
			if err == nil {
				t.Error("the error of what was done is lost")
			}
			done.Add(1)
		}
		go slow(10 * mib) // takes all of the room
		synctest.Wait()
		<-time.After(10*patience + patience/2) // of the clock of the bubble
		if running.Load() != 1 || aborted.Load() != 0 {
			t.Errorf("nobody waits: %d running, %d aborted", running.Load(), aborted.Load())
		}
		for _, small := range []any{sized(100), "no size"} {
			if err := l.While(t.Context(), small, nil, func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/10)
		if err := l.While(ctx, sized(mib), nil, func() error { t.Error("there was room"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no room: %v", err)
		}
		cancel()
		quick := make(chan struct{})
		go func() {
			defer close(quick)
			if err := l.While(t.Context(), sized(2*mib), nil, func() error { return nil }); err != nil {
				t.Error(err)
			}
		}()
		<-quick
		synctest.Wait()
		if aborted.Load() != 1 || done.Load() != 1 || running.Load() != 0 {
			t.Errorf("%d aborted, %d done, %d running", aborted.Load(), done.Load(), running.Load())
		}
	})
}
