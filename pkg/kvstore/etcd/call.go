package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// scope is the context of one call: it ends with the caller's context, with the
// session, or at the call's deadline.
type scope struct {
	ctx    context.Context //nolint:containedctx // lives as long as the call
	caller context.Context //nolint:containedctx // likewise
	cancel context.CancelCauseFunc
	unhook func() bool
	limit  *noAnswerError
	timer  *time.Timer
}

func (e *Session) scope(caller context.Context, what string, d time.Duration) *scope {
	s := &scope{caller: caller, limit: &noAnswerError{what: what, after: d}}
	s.ctx, s.cancel = context.WithCancelCause(caller)
	s.unhook = context.AfterFunc(e.life, func() { s.cancel(e.over()) })
	if over := e.over(); over != nil {
		s.cancel(over) // at once: the hook runs later, and a request could be sent before it
	}
	if d > 0 {
		s.timer = time.AfterFunc(d, func() { s.cancel(s.limit) })
	}
	return s
}

// close releases the resources of the scope, and ends the calls in it.
func (s *scope) close() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.unhook()
	s.cancel(context.Canceled)
}

// explain returns an error that has the cause of a failed call.
func (e *Session) explain(s *scope, op, key string, err error) error {
	if cerr := s.caller.Err(); cerr != nil {
		return cerr
	}
	if _, done := errors.AsType[*kvstore.KeyError](err); done {
		return err
	}
	switch cause := context.Cause(s.ctx); {
	case e.over() != nil:
		err = e.over()
	case cause == error(s.limit):
		err = s.limit.with(e.dialer.trouble())
	case cause != nil && !errors.Is(cause, context.Canceled):
		err = cause
	default:
		if err = fromRPC(err); errors.Is(err, kvstore.ErrProtocol) {
			err = e.checked(err) // bytes that are not a message
		}
	}
	return hint.Failed(op, key, err)
}

// operate does one operation: it waits for the limits, and counts and traces the operation.
func (e *Session) operate(caller context.Context, op, key string, d time.Duration, f func(context.Context) error) error {
	if err := e.admit(caller, op, key); err != nil {
		return err
	}
	took, err := e.call(caller, op, key, d, f)
	e.record(op, key, took, err)
	return err
}

// call makes one request under the limit of concurrent operations, with a
// deadline. The returned time excludes the wait.
func (e *Session) call(caller context.Context, op, key string, d time.Duration, f func(context.Context) error) (time.Duration, error) {
	wait := e.scope(caller, op, 0)
	defer wait.close()
	release, err := e.limit.acquire(wait.ctx)
	if err != nil {
		return 0, e.explain(wait, op, key, err)
	}
	defer release()
	return e.within(caller, op, key, d, f)
}

// unlimited is operate without limits.
func (e *Session) unlimited(caller context.Context, op, key string, d time.Duration, f func(context.Context) error) error {
	took, err := e.within(caller, op, key, d, f)
	e.record(op, key, took, err)
	return err
}

// within makes one request with a deadline and returns how long it took.
func (e *Session) within(caller context.Context, op, key string, d time.Duration, f func(context.Context) error) (time.Duration, error) {
	s := e.scope(caller, op, d)
	defer s.close()
	start := time.Now()
	err := f(s.ctx)
	took := time.Since(start)
	if err != nil {
		err = e.explain(s, op, key, err)
	}
	return took, err
}

// admit waits for the rate limit, and counts an operation that fails there.
func (e *Session) admit(caller context.Context, op, key string) error {
	s := e.scope(caller, op, 0)
	defer s.close()
	if err := e.limit.token(s.ctx); err != nil {
		err = e.explain(s, op, key, err)
		e.record(op, key, 0, err)
		return err
	}
	return nil
}

// record counts and traces an operation that has ended.
func (e *Session) record(op, key string, took time.Duration, err error) {
	e.opts.Metrics.observe(op, key, took, err)
	log := e.opts.Log
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	omitted, ok := e.opts.Traces.admit(time.Now(), err != nil)
	if !ok {
		return
	}
	of := []any{"op", op, "key", key, "endpoint", e.endpoint, "took", took, "error", err}
	if omitted > 0 {
		of = append(of, "notTraced", omitted)
	}
	log.Debug("Kvstore operation", of...)
}

// limiter limits the operations per second, and the number of concurrent operations.
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

// acquire waits until another concurrent operation is allowed; release ends this operation.
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
