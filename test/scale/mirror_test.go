package scale

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// mirrorBounds are the limits of a mirror of M: a multiple of the seconds of a bare client that copies the same keys,
// live heap, and the 99th percentile of the time from the remote to the copy at changesPerSecond.
const (
	mirrorRatio      = 2.0
	mirrorHeapMiB    = 150.0
	mirrorLate       = 50 * time.Millisecond
	mirrorTakeover   = 10 * time.Second // until another one has written every key with its own leases
	changesPerSecond = 1000
	changesFor       = 20 * time.Second
	mirrorRuns       = 3
)

// target starts the etcd of the copies in a process of its own. stop ends it.
func (p programs) target(tb testing.TB) (endpoint string, stop func()) {
	tb.Helper()
	_, words, stop := p.serve(tb, "etcd", etcdserver.Config{})
	return words[0], stop
}

// ends connects to the remotes, and to the etcd of the copies.
func ends(argument string) (from map[string]*clientv3.Client, to *clientv3.Client, err error) {
	dir, endpoint, _ := strings.Cut(argument, " ")
	if from, err = remotes(dir); err != nil {
		return nil, nil, err
	}
	to, err = clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	return from, to, err
}

// runCopy is the floor of a mirror: a bare client that lists the same keys as the mirror, and writes them with
// transactions of the maximum size that etcd allows.
func runCopy(ctx context.Context, argument string) error {
	from, to, err := ends(argument)
	if err != nil {
		return err
	}
	defer to.Close()
	return needed(ctx, from, wire.Resources(), func(ctx context.Context, c *clientv3.Client, name string, r wire.Resource) (int, error) {
		prefix, into := r.Prefix(name, false), r.Prefix(name, true)
		return list(ctx, c, prefix, func(kvs []*mvccpb.KeyValue) error {
			for part := range slices.Chunk(kvs, 128) {
				ops := make([]clientv3.Op, len(part))
				for i, kv := range part {
					ops[i] = clientv3.OpPut(into+string(kv.Key[len(prefix):]), string(kv.Value))
				}
				if _, err := to.Txn(ctx).Then(ops...).Commit(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// copyFloor measures one run of it.
func (p programs) copyFloor(tb testing.TB, dir string) (r result) {
	tb.Helper()
	endpoint, stop := p.target(tb)
	defer stop()
	return p.timed(tb, "copy", dir+" "+endpoint)
}

// mirror measures one run of a mirror; then is called while it runs.
func (p programs) mirror(tb testing.TB, dir string, then func(endpoint string)) result {
	tb.Helper()
	endpoint, stop := p.target(tb)
	defer stop()
	a, end := p.startMirror(tb, dir, endpoint)
	defer end()
	r, err := a.measure(tb.Context(), a.began)
	if err != nil {
		tb.Fatalf("the mirror: %v", err)
	}
	then(endpoint)
	return r
}

func (p programs) startMirror(tb testing.TB, dir, endpoint string) (a process, end func()) {
	tb.Helper()
	return p.start(tb, "mirror", "--clustermesh-config", dir, "--kvstore-opt", "etcd.address="+endpoint,
		"--per-cluster-ready-timeout", "1h", "--global-ready-timeout", "1h")
}

// takeover is the time from the end of a mirror until the standby has copied all keys.
func (p programs) takeover(tb testing.TB, dir string, keys int) time.Duration {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	endpoint, stop := p.target(tb)
	defer stop()
	first, endFirst := p.startMirror(tb, dir, endpoint)
	if err := first.copied(ctx, keys); err != nil {
		tb.Fatalf("the first mirror: %v", err)
	}
	second, end := p.startMirror(tb, dir, endpoint)
	defer end()
	if err := second.ready(ctx); err != nil {
		tb.Fatalf("the one that stands by: %v", err)
	}
	if n, err := second.keys(ctx); err != nil || n != 0 {
		tb.Fatalf("it has %d keys while it stands by, %v", n, err)
	}
	began := time.Now()
	endFirst()
	if err := second.copied(ctx, keys); err != nil {
		tb.Fatalf("the second mirror: %v", err)
	}
	return time.Since(began)
}

// BenchmarkMirror copies M into one etcd, is taken over by another mirror, and keeps up
// with changes. It fails when a bound is exceeded, so the machine should have nothing else to do.
func BenchmarkMirror(b *testing.B) {
	p := build(b)
	m := scenarios()[0]
	b.Run("M", func(b *testing.B) {
		dir := p.clusters(b, m)
		p.copyFloor(b, dir) // warms the servers' caches for all runs
		var mirrors, floors []result
		for b.Loop() {
			some, floor := turns(b, m, mirrorRuns, func() result { return p.mirror(b, dir, func(string) {}) }, func() result { return p.copyFloor(b, dir) })
			mirrors, floors = append(mirrors, some...), append(floors, floor...)
		}
		f := m.figures(mirrors, floors)
		heap := most(mirrors, func(r result) float64 { return r.Heap }) / (1 << 20)
		m.report(b, f)
		b.ReportMetric(heap, "heap-MiB")
		if f.ratio > mirrorRatio || heap > mirrorHeapMiB {
			b.Errorf("%.2f times the floor's seconds and %.0f MiB of live heap; %g and %g are allowed", f.ratio, heap, mirrorRatio, mirrorHeapMiB)
		}
	})
	b.Run("takeover", func(b *testing.B) {
		dir := p.clusters(b, m)
		var took time.Duration
		for b.Loop() {
			took = p.takeover(b, dir, m.keys())
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took.Seconds(), "s")
		if took > mirrorTakeover {
			b.Errorf("it took %s, %s is allowed", took, mirrorTakeover)
		}
	})
	b.Run("changes", func(b *testing.B) {
		dir := p.churning(b, m, changesPerSecond)
		var late lateness
		for b.Loop() {
			p.mirror(b, dir, func(endpoint string) { late = p.late(b, dir, endpoint) })
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(late.Changes)/changesFor.Seconds(), "changes/s")
		b.ReportMetric(late.Median, "median-ms")
		b.ReportMetric(late.P99, "p99-ms")
		b.ReportMetric(late.Most, "most-ms")
		// A key that changes twice in a moment is copied once.
		if late.P99 > float64(mirrorLate.Milliseconds()) || late.Missing > late.Changes/100 {
			b.Errorf("the 99th percentile is %.1f ms, and %d changes never came", late.P99, late.Missing)
		}
	})
}
