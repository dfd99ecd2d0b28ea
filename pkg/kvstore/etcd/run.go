package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// backoffMin is the shortest pause before the next attempt to watch the heartbeat.
const backoffMin = 50 * time.Millisecond

// Run is the watchdog of the session until it is over, and returns the reason: [kvstore.ErrServerChanged],
// [kvstore.ErrQuorumLost], [kvstore.ErrProtocol] (an answer breaks a rule), [kvstore.ErrClosed], or the error of the
// context. It is called once per session.
//
// It makes a linearizable read at intervals and calls onProbe with each result, one after another;
// onProbe must not block. It requests the status of the endpoint, and watches the heartbeat; neither
// ends the session (design.md §1.3). It keeps leases alive and reports locks that are held for a long
// time. The size of the own cluster stretches the intervals (spec kvstore.md §2.6).
func (e *Session) Run(ctx context.Context, onProbe func(kvstore.Probe)) error {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.probeLoop(ctx, onProbe) })
	g.Go(func() error { return e.statusLoop(ctx) })
	g.Go(func() error { return e.heartbeatLoop(ctx) })
	g.Go(func() error { return e.Keep(ctx) })
	err := g.Wait()
	if cerr := caller.Err(); cerr != nil {
		return cerr
	}
	if over := e.over(); over != nil {
		err = over
	}
	e.update((*health).closed)
	return fmt.Errorf("the session with %s is over: %w", e.endpoint, err)
}

// lifeSign is the number of bytes, far more than pings have, whose arrival during an unanswered probe
// proves that the server is alive and the link is slow.
const lifeSign = 16 << 10

// probeLoop makes the linearizable reads. A list over a slow link delays them; that must not end the
// session, because the list would then fail.
func (e *Session) probeLoop(ctx context.Context, onProbe func(kvstore.Probe)) error {
	for {
		p, before := kvstore.Probe{At: time.Now()}, e.dialer.received.Load()
		p.Head, p.Err = e.head(ctx, e.opts.Timings.Probe)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var failed int
		e.update(func(h *health) { failed = h.probed(time.Now(), p) })
		if p.Err != nil {
			e.opts.Metrics.quorumError(p.Err)
		}
		if onProbe != nil {
			onProbe(p)
		}
		slow := errors.Is(p.Err, context.DeadlineExceeded) && e.dialer.received.Load()-before > lifeSign
		if failed > e.opts.MaxConsecutiveQuorumErrors && !slow {
			return fmt.Errorf("%w, %d in a row: %w", kvstore.ErrQuorumLost, failed, p.Err)
		}
		if err := e.untilProbe(ctx, p.Err != nil); err != nil {
			return err
		}
	}
}

// doubtPause is the pause between a broken stream and the next probe, because other streams usually break as well.
const doubtPause = 200 * time.Millisecond

// untilProbe waits until the next probe is due: immediately (after doubtPause) when a stream breaks, so
// that the status soon shows a dead endpoint, and when the first sync is complete; earlier than usual
// after a failed probe.
func (e *Session) untilProbe(ctx context.Context, failed bool) error {
	interval := e.opts.probeInterval()
	if failed {
		interval /= 3
	}
	due := time.NewTimer(e.spread(interval))
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-due.C:
		return nil
	case <-e.doubts:
		return waiting.Sleep(ctx, doubtPause)
	}
}

// spread returns an interval that is up to 10% longer or shorter, so that hundreds of sessions that
// began together do not send requests together. It is rounded to end at a moment of the schedule.
func (e *Session) spread(interval time.Duration) time.Duration {
	return e.opts.Schedule.Nearest(interval*9/10 + rand.N(interval/5))
}

// statusLoop requests the status of the endpoint at intervals. Connect has made the first request.
func (e *Session) statusLoop(ctx context.Context) error {
	well := e.Status().Server.Version != ""
	for {
		if well && e.opts.NoEndpointChecks {
			<-ctx.Done()
			return ctx.Err()
		}
		interval := e.opts.Timings.StatusInterval
		if !well || !e.Status().Connected {
			interval = e.opts.Timings.StatusRetry
		}
		if err := waiting.Sleep(ctx, e.spread(e.opts.scaled(interval))); err != nil {
			return err
		}
		well = e.askEndpoint(ctx)
	}
}

// heartbeatLoop watches the heartbeat, and opens the watch again each time it breaks.
func (e *Session) heartbeatLoop(ctx context.Context) error {
	for pause := backoffMin; ; {
		heard, err := e.followHeartbeat(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.update(func(h *health) { h.failed(time.Now(), err) })
		if heard {
			pause = backoffMin
		}
		if err := waiting.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, e.opts.Timings.BackoffMax)
	}
}

// followHeartbeat reads the heartbeat and watches it until the watch breaks.
func (e *Session) followHeartbeat(ctx context.Context) (heard bool, err error) {
	at, err := e.readHeartbeat(ctx)
	if err != nil {
		return false, err
	}
	st, err := e.openStream(ctx, wire.HeartbeatKey, at)
	if err != nil {
		return false, err
	}
	defer st.Close()
	for {
		b, err := st.Recv()
		if err != nil {
			return true, err
		}
		for _, ev := range b.Events {
			if ev.Type == kvstore.EventPut {
				e.update(func(h *health) { h.heartbeat(time.Now(), ev.ModRevision) })
			}
		}
	}
}

// readHeartbeat reads the heartbeat without waiting for a limit.
func (e *Session) readHeartbeat(ctx context.Context) (kvstore.Position, error) {
	s := e.scope(ctx, "reading the heartbeat", e.opts.Timings.Read)
	defer s.close()
	resp, at, err := e.readNow(s.ctx, &pb.RangeRequest{Key: []byte(wire.HeartbeatKey)})
	if err != nil {
		return kvstore.Position{}, e.explain(s, "heartbeat", wire.HeartbeatKey, err)
	}
	for _, kv := range resp.Kvs {
		e.update(func(h *health) { h.heartbeat(time.Now(), kv.ModRevision) })
	}
	return at, nil
}
