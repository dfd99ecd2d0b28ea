package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// probes collects what Run reports.
type probes struct {
	mu  sync.Mutex
	all []kvstore.Probe
}

func (p *probes) add(pr kvstore.Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, pr)
}

func (p *probes) last() (last kvstore.Probe, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n = len(p.all); n > 0 {
		last = p.all[n-1]
	}
	return last, n
}

func TestRunProbes(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	e := connect(t, addresses(t, srv.Endpoint()), quick())
	ctx, cancel := context.WithCancel(t.Context())
	var got probes
	start := time.Now()
	done := run(ctx, e, got.add)
	rev := srv.Put(t, "k", "v")
	waittest.Until(t, "a probe sees the write", func() bool {
		p, _ := got.last()
		return p.Head == kvstore.Position{ClusterID: srv.ClusterID(), Revision: rev}
	})
	p, _ := got.last()
	if p.Err != nil || p.At.Before(start) || p.At.After(time.Now()) {
		t.Errorf("%+v", p)
	}
	waittest.Until(t, "the status has it", func() bool {
		s := e.Status()
		return s.Connected && s.Head == p.Head && s.Server.Leader && s.Server.DBSize > 0 && !s.LastSuccess.Before(p.At)
	})
	cancel()
	kvtest.WantErr(t, ends(t, done), context.Canceled)
	if !e.Status().Connected {
		t.Error("the end of Run's context has ended the session")
	}
}

func TestFrozenServerEndsRun(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	o := quick()
	o.Metrics = NewMetrics(nil)
	e := connect(t, addresses(t, p.Endpoint()), o)
	var got probes
	done := run(t.Context(), e, got.add)
	waittest.Until(t, "a probe", func() bool { _, n := got.last(); return n > 0 })
	st := watch(t, e, "p/", e.Status().Head)
	p.Freeze(t)
	waitConnected(t, e, false)
	kvtest.WantErr(t, ends(t, done), kvstore.ErrQuorumLost, "3 in a row", "no answer within 1s", e.endpoint)
	s := e.Status()
	if s.Connected || s.Quorum || s.ConsecutiveErrors != 3 || !strings.Contains(s.LastError, "no answer") {
		t.Errorf("%+v", s)
	}
	if n := testutil.ToFloat64(o.Metrics.quorumErrors.WithLabelValues("timeout")); n < 3 {
		t.Errorf("%v quorum errors, want 3 or more", n)
	}
	st.Close()
	kvtest.WantErr(t, second(st.Recv()), kvstore.ErrClosed)
}

func TestSessionOutlivesARestart(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	o := quick()
	o.MaxConsecutiveQuorumErrors = 1000
	e := connect(t, addresses(t, p.Endpoint()), o)
	done := run(t.Context(), e, nil)
	st := watch(t, e, "p/", e.Status().Head)
	p.Kill(t)
	if _, err := st.Recv(); err == nil || errors.Is(err, kvstore.ErrServerChanged) {
		t.Errorf("the stream of a killed server: %v", err)
	}
	waitConnected(t, e, false)
	p.Restart(t)
	waitConnected(t, e, true)
	closes(t, e, done)
	kvtest.WantErr(t, e.WaitConnected(t.Context(), true), kvstore.ErrClosed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kvtest.WantErr(t, e.WaitConnected(ctx, false), nil) // it is disconnected already
}

func TestAnotherServerEndsRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		restart func(*etcdtest.Process, *testing.T)
		want    string
	}{
		{"wiped under the same token", func(p *etcdtest.Process, t *testing.T) { p.RestartEmpty(t) }, "its revision decreased"},
		{"wiped under another token", func(p *etcdtest.Process, t *testing.T) { p.RestartAsOther(t) }, "cluster ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := etcdtest.StartProcess(t)
			p.Put(t, "k", "1", "k", "2", "k", "3")
			o := quick()
			o.MaxConsecutiveQuorumErrors = 1000 // while it is down
			e := connect(t, addresses(t, p.Endpoint()), o)
			done := run(t.Context(), e, nil)
			c.restart(p, t)
			kvtest.WantErr(t, ends(t, done), kvstore.ErrServerChanged, c.want)
		})
	}
}

// TestReplicaBehindOneEndpoint: a load balancer sends the next connection to
// another etcd, while the first etcd still runs.
func TestReplicaBehindOneEndpoint(t *testing.T) {
	t.Parallel()
	a, b := etcdtest.Start(t), etcdtest.Start(t)
	b.Put(t, "p/k", "v")
	var net cutter
	net.redirect(a.Addr())
	o := quick()
	o.Dial = net.dial
	o.MaxConsecutiveQuorumErrors = 1000 // on a slow machine
	e := connect(t, addresses(t, "http://apiserver:2379"), o)
	done := run(t.Context(), e, nil)
	must(t, second(e.Head(waittest.Context(t))))
	net.redirect(b.Addr())
	net.cut()
	kvtest.WantErr(t, ends(t, done), kvstore.ErrServerChanged)
	_, err := e.List(waittest.Context(t), "p/", func(p kvstore.Page) error {
		t.Errorf("a page of another server: %v", p)
		return nil
	})
	kvtest.WantErr(t, err, kvstore.ErrServerChanged)
}

func TestDeadHeartbeatOnlyDegrades(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	o := quick()
	o.Timings.HeartbeatLimit = 200 * time.Millisecond
	e := connect(t, addresses(t, srv.Endpoint()), o)
	var got probes
	done := run(t.Context(), e, got.add)
	waittest.Until(t, "an absent heartbeat is stale", func() bool { return e.Status().Heartbeat.Stale })
	s := e.Status()
	if !s.Heartbeat.Seen.IsZero() || !s.Connected || !strings.Contains(s.String(), "heartbeat never seen") {
		t.Errorf("%+v", s)
	}
	srv.Put(t, wire.HeartbeatKey, "whatever")
	waittest.Until(t, "a heartbeat is seen", func() bool { return !e.Status().Heartbeat.Seen.IsZero() })
	seen := e.Status().Heartbeat.Seen
	srv.Delete(t, wire.HeartbeatKey)
	srv.Put(t, "cilium/.heartbeatx", "another key")
	waittest.Until(t, "it is stale again", func() bool { return e.Status().Heartbeat.Stale })
	if s := e.Status(); s.Heartbeat.Seen != seen || !s.Connected || !strings.Contains(s.String(), "heartbeat stale") {
		t.Errorf("%+v", s)
	}
	_, n := got.last()
	waittest.Until(t, "more probes", func() bool { _, m := got.last(); return m > n+2 })
	if p, _ := got.last(); p.Err != nil {
		t.Errorf("a probe fails: %v", p.Err)
	}
	closes(t, e, done)
}

// TestHeartbeatSurvivesBreaks: a broken watch of the heartbeat is opened again, and
// the previous heartbeat does not count as a new one.
func TestHeartbeatSurvivesBreaks(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.Put(t, wire.HeartbeatKey, "1")
	var net cutter
	o := quick()
	o.Dial = net.dial
	o.MaxConsecutiveQuorumErrors = 1000
	e := connect(t, addresses(t, srv.Endpoint()), o)
	done := run(t.Context(), e, nil)
	waittest.Until(t, "the present heartbeat counts", func() bool { return !e.Status().Heartbeat.Seen.IsZero() })
	seen := e.Status().Heartbeat.Seen
	for range 3 {
		n := net.count()
		net.cut()
		waittest.Until(t, "a new connection", func() bool { return net.count() > n })
	}
	waitConnected(t, e, true)
	if s := e.Status(); s.Heartbeat.Seen != seen {
		t.Error("an old heartbeat counts twice")
	}
	srv.Put(t, wire.HeartbeatKey, "2")
	waittest.Until(t, "the next heartbeat", func() bool { return e.Status().Heartbeat.Seen.After(seen) })
	closes(t, e, done)
}
