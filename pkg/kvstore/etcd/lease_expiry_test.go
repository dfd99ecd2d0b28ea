package etcd

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestLeaseRunsOut: when no session keeps the leases alive, etcd deletes the keys. The
// next session reports them, and they are put again with another lease.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	ctx := waittest.Context(t)
	leases := kvstore.NewLeases()
	var log waittest.Output
	o := hasty()
	o.LeaseTTL = 3 * time.Second
	o.Leases, o.Log, o.Metrics = leases, slog.New(slog.NewTextHandler(&log, nil)), NewMetrics(nil)
	e, stop := writer(t, srv.Endpoint(), o)
	var want []string
	for i := range 20 {
		key := fmt.Sprintf("p/%02d", i)
		write(t, e, key, []byte("v"), kvstore.Leased())
		want = append(want, key)
	}
	first := leaseOf(t, e, "p/00")
	lost := make(chan []string, 10)
	e.OnLeaseExpired("p/", func(keys []string) { lost <- keys })
	stop()
	e.Close()
	waittest.Until(t, "etcd ends the lease", func() bool {
		resp, err := srv.Local().Get(ctx, "p/00")
		return err == nil && resp.Count == 0
	})
	e, _ = writer(t, srv.Endpoint(), o)
	select {
	case got := <-lost:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	case <-ctx.Done():
		t.Fatal("nobody is notified")
	}
	for _, key := range want {
		if r, err := e.Put(ctx, key, []byte("v"), kvstore.Leased(), kvstore.IfChanged()); err != nil || !r.Done {
			t.Errorf("put back %s: %+v, %v", key, r, err)
		}
	}
	second := leaseOf(t, e, "p/00")
	resp, err := srv.Local().Leases(ctx)
	if err != nil || len(resp.Leases) != 1 || int64(resp.Leases[0].ID) != second || first == second {
		t.Errorf("leases %v, was %x, is %x; %v", resp, first, second, err)
	}
	if n := testutil.ToFloat64(o.Metrics.leases.WithLabelValues("session")); n != 1 || e.Status().Leases != 1 {
		t.Errorf("the gauge says %v, the status %v", n, e.Status())
	}
	if len(log.Lines("A kvstore lease has ended")) != 1 {
		t.Errorf("logged: %q", log.String())
	}
	if len(lost) != 0 {
		t.Errorf("lost again: %v", <-lost)
	}
}

func leaseOf(t *testing.T, c kvstore.Client, key string) int64 {
	t.Helper()
	kv, _, err := c.Get(waittest.Context(t), key)
	if err != nil || kv == nil || kv.Lease == 0 {
		t.Fatalf("%s: %v, %v", key, kv, err)
	}
	return kv.Lease
}

// TestLeasesAreKeptByTheServer: with Run, a key exists for many times the TTL of its lease.
func TestLeasesAreKeptByTheServer(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	reg, o := prometheus.NewRegistry(), hasty()
	o.LeaseTTL, o.LockTTL = 5*time.Second, 5*time.Second // long enough for a busy machine
	o.Metrics = NewMetrics(reg)
	e, _ := writer(t, srv.Endpoint(), o)
	l := lock(t, e, "locks/l")
	write(t, e, "k", nil, kvstore.Leased())
	lease := leaseOf(t, e, "k")
	waittest.Until(t, "both leases have been kept alive for longer than their time", func() bool {
		return samples(t, reg, "keep leases alive", "read") >= 2*5
	})
	if now := leaseOf(t, e, "k"); now != lease {
		t.Errorf("lease %x, was %x", now, lease)
	}
	write(t, e, "k", nil, kvstore.Holding(l))
	l.Unlock()
}
