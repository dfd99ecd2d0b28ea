package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func limits(qps, bootstrap, inflight int) Options {
	o := DefaultOptions()
	o.QPS, o.BootstrapQPS, o.MaxInflight = qps, bootstrap, inflight
	return o
}

// take checks how long this number of operations waits.
func take(t *testing.T, l *limiter, operations int, want time.Duration) {
	t.Helper()
	start := time.Now()
	for range operations {
		must(t, l.token(t.Context()))
	}
	if got := time.Since(start).Round(10 * time.Millisecond); got != want {
		t.Errorf("%d operations took %s, want %s", operations, got, want)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		qps, bootstrap int
		complete       bool
		operations     int
		want           time.Duration
	}{
		{"a burst of one second's worth is free", 20, 0, false, 20, 0},
		{"then each costs its share", 20, 0, false, 120, 5 * time.Second},
		{"the first sync has a limit of its own", 20, 1000, false, 3000, 2 * time.Second},
		{"once complete the everyday limit holds", 20, 1000, true, 120, 5 * time.Second},
		{"zero is no limit", 0, 0, true, 100000, 0},
		{"zero is no limit after a first sync with one", 0, 10, true, 100000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(limits(c.qps, c.bootstrap, 0))
				if c.complete {
					l.set(l.running)
				}
				take(t, l, c.operations, c.want)
			})
		})
	}
}

func TestRateLimitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(limits(1, 0, 0))
		ctx, cancel := context.WithCancel(t.Context())
		must(t, l.token(ctx))
		time.AfterFunc(100*time.Millisecond, cancel)
		kvtest.WantErr(t, l.token(ctx), context.Canceled)
	})
}

func TestInflightLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(limits(0, 0, 3))
		start := time.Now()
		done := make(chan time.Duration, 9)
		for range 9 {
			go func() {
				release, err := l.acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				<-time.After(time.Second) // an operation, on the test's own clock
				release()
				done <- time.Since(start)
			}()
		}
		synctest.Wait()
		if n := len(l.inflight); n != 3 {
			t.Errorf("%d under way, want 3", n)
		}
		for i := range 9 {
			if got, want := <-done, time.Duration(1+i/3)*time.Second; got != want {
				t.Errorf("operation %d ended at %s, want %s", i, got, want)
			}
		}
	})
}

func TestInflightLimitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	l := newLimiter(limits(0, 0, 1))
	release, err := l.acquire(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(kvstore.ErrClosed)
	kvtest.WantErr(t, second(l.acquire(ctx)), kvstore.ErrClosed)
	release()
	must(t, second(l.acquire(t.Context())))
	free := newLimiter(limits(0, 0, 0))
	for range 100 {
		must(t, second(free.acquire(t.Context())))
	}
}
