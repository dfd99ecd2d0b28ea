package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// nowhere refuses connections.
const nowhere = "127.0.0.1:1"

// hasty returns options with short intervals, for writers.
func hasty() Options {
	o := quick()
	o.MaxConsecutiveQuorumErrors = 1 << 30
	return o
}

// writer connects and runs until the end of the test, or until stop is called.
func writer(t *testing.T, endpoint string, o Options) (e *Session, stop func()) {
	t.Helper()
	e = connect(t, addresses(t, endpoint), o)
	ctx, cancel := context.WithCancel(t.Context())
	done := run(ctx, e, nil)
	stop = sync.OnceFunc(func() {
		cancel()
		_ = ends(t, done)
	})
	t.Cleanup(stop)
	return e, stop
}

func TestWritesAreLimitedAndLocksAreNot(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	o := hasty()
	o.QPS, o.BootstrapQPS = 1, 1
	e, _ := writer(t, srv.Endpoint(), o)
	e.limit.rate.SetLimit(rate.Every(time.Hour)) // a limited operation waits for longer than the test lasts
	ctx := waittest.Context(t)
	write(t, e, "k", nil)
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := e.Delete(soon, "k"); err == nil {
		t.Error("two operations at once where one is allowed")
	}
	for range 20 {
		l := lock(t, e, "locks/l")
		l.Unlock()
	}
}

func TestWritesToASilentServerEnd(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	o := hasty()
	o.Timings.Read, o.Timings.Write = 300*time.Millisecond, 300*time.Millisecond
	e, _ := writer(t, p.Endpoint(), o)
	ctx := waittest.Context(t)
	l := lock(t, e, "locks/l")
	p.Freeze(t)
	waittest.Until(t, "it is silent", func() bool { _, err := e.Head(ctx); return err != nil })
	for what, write := range map[string]func() error{
		"put":           func() error { _, err := e.Put(ctx, "k", nil); return err },
		"leased put":    func() error { _, err := e.Put(ctx, "k", nil, kvstore.Leased()); return err },
		"update":        func() error { _, err := e.Update(ctx, []kvstore.Write{{Key: "k"}}); return err },
		"delete":        func() error { _, err := e.Delete(ctx, "k"); return err },
		"delete prefix": func() error { _, err := e.DeletePrefix(ctx, "p/"); return err },
		"lock":          func() error { _, err := e.Lock(ctx, "locks/other"); return err },
	} {
		if err := write(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 300ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
	l.Unlock()
	e.Close()
}

func TestWriteMetrics(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	o, reg := hasty(), prometheus.NewRegistry()
	o.Metrics = NewMetrics(reg)
	e, _ := writer(t, srv.Endpoint(), o)
	ctx := waittest.Context(t)
	for _, err := range []error{
		second(e.Put(ctx, "cilium/state/ip/v1/a", nil, kvstore.Leased())),
		second(e.Put(ctx, "cilium/state/ip/v1/b", nil)),
		second(e.Update(ctx, []kvstore.Write{{Key: "cilium/state/ip/v1/c"}, {Key: "cilium/state/ip/v1/d", Delete: true}}, kvstore.Leased())),
		second(e.Delete(ctx, "cilium/state/ip/v1/a")),
		second(e.DeletePrefix(ctx, "cilium/state/ip/v1/")),
	} {
		must(t, err)
	}
	l := lock(t, e, "cilium/state/identities/v1/locks/l")
	gauges := func(want ...float64) {
		t.Helper()
		m := o.Metrics
		leases := func(kind string) float64 { return testutil.ToFloat64(m.leases.WithLabelValues(kind)) }
		got := []float64{leases("session"), leases("lock"), testutil.ToFloat64(m.locks)}
		if !slices.Equal(got, want) {
			t.Errorf("gauges %v, want %v", got, want)
		}
	}
	gauges(1, 1, 1)
	l.Unlock()
	gauges(1, 1, 0)
	for op, want := range map[string]struct {
		kind string
		n    uint64
	}{"put": {"set", 2}, "update": {"set", 1}, "delete": {"delete", 1}, "delete prefix": {"delete", 1}, "unlock": {"delete", 1}} {
		if n := samples(t, reg, op, want.kind); n != want.n {
			t.Errorf("%s: %d, want %d", op, n, want.n)
		}
	}
	if s := e.Status().String(); !strings.Contains(s, "leases=1, lock leases=1") {
		t.Error(s)
	}
	lock(t, e, "locks/l")
	e.Close()
	gauges(0, 0, 0)
}

// samples counts the operations of a kind in the histogram.
func samples(t *testing.T, reg *prometheus.Registry, op, kind string) (n uint64) {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["action"] == op && labels["kind"] == kind {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}
