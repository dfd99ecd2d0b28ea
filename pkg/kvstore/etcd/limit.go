package etcd

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// limiter holds back operations: so many per second, so many at once.
type limiter struct {
	rate      *rate.Limiter
	bootstrap int           // the limit per second during the first sync
	running   int           // the limit per second after it
	inflight  chan struct{} // nil: no limit
}

func newLimiter(o Options) *limiter {
	l := &limiter{running: o.QPS, bootstrap: cmp.Or(o.BootstrapQPS, o.QPS)}
	l.rate = rate.NewLimiter(perSecond(l.bootstrap), max(l.bootstrap, 1))
	if o.MaxInflight > 0 {
		l.inflight = make(chan struct{}, o.MaxInflight)
	}
	return l
}

func perSecond(qps int) rate.Limit {
	if qps == 0 {
		return rate.Inf
	}
	return rate.Limit(qps)
}

// set switches to another limit per second.
func (l *limiter) set(qps int) {
	l.rate.SetLimit(perSecond(qps))
	l.rate.SetBurst(max(qps, 1))
}

// token waits for the permission to begin one operation.
func (l *limiter) token(ctx context.Context) error {
	if err := l.rate.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for the rate limit: %w", err)
	}
	return nil
}

// acquire waits for one of the places for operations under way; release gives it back.
func (l *limiter) acquire(ctx context.Context) (release func(), err error) {
	if l.inflight == nil {
		return func() {}, nil
	}
	select {
	case l.inflight <- struct{}{}:
		return func() { <-l.inflight }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for one of %d operations under way to end: %w", cap(l.inflight), context.Cause(ctx))
	}
}
