package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// mirrorBounds are what a mirror of M may need: times the seconds of a bare client
// that copies the same keys, live heap, and the 99th percentile of the time from
// the remote to the copy at changesPerSecond.
const (
	mirrorRatio      = 2.0
	mirrorHeapMiB    = 150.0
	mirrorLate       = 50 * time.Millisecond
	mirrorTakeover   = 10 * time.Second // until another one has written every key with its own leases
	changesPerSecond = 1000
	changesFor       = 20 * time.Second
	mirrorRuns       = 3
)

// serveTarget is an etcd to copy into, in a process of its own. It ends with its
// standard input.
func serveTarget(ctx context.Context) error {
	s, err := etcdserver.Start(etcdserver.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready", s.Endpoint())
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	<-ctx.Done()
	return nil
}

// target starts that process. stop ends it.
func (p programs) target(tb testing.TB) (endpoint string, stop func()) {
	tb.Helper()
	cmd := p.as("target", "")
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		tb.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = stdin.Close(); _ = cmd.Wait() })
	tb.Cleanup(stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	endpoint, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ok {
		tb.Fatalf("the target said %q: %v", line, err)
	}
	return endpoint, stop
}

// remotes opens a client for each client file of a directory, by cluster.
func remotes(dir string) (map[string]*clientv3.Client, error) {
	files, err := filepath.Glob(filepath.Join(dir, "cluster*"))
	if err != nil {
		return nil, err
	}
	all := map[string]*clientv3.Client{}
	for _, file := range files {
		if filepath.Ext(file) != "" {
			continue // a certificate or a key
		}
		cfg, err := clientyaml.NewConfig(file)
		if err != nil {
			return nil, err
		}
		cfg.Logger = zap.NewNop()
		cfg.DialOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256 << 20))}
		if all[filepath.Base(file)], err = clientv3.New(*cfg); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runCopy is the floor of a mirror: a bare client that lists what the mirror lists,
// and writes it with transactions of as many operations as etcd allows.
func runCopy(ctx context.Context, argument string) error {
	dir, endpoint, _ := strings.Cut(argument, " ")
	from, err := remotes(dir)
	if err != nil {
		return err
	}
	to, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer to.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var r result
	for name, c := range from {
		defer c.Close()
		for _, resource := range wire.Resources() {
			g.Go(func() error {
				n, err := copyPrefix(ctx, c, to, resource.Prefix(name, false), resource.Prefix(name, true))
				mu.Lock()
				defer mu.Unlock()
				r.Keys += n
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var err1, err2 error
	r.CPU, err1 = cpuSeconds(os.Getpid())
	_, r.Peak, err2 = resident(os.Getpid())
	return errors.Join(err1, err2, json.NewEncoder(os.Stdout).Encode(r))
}

func copyPrefix(ctx context.Context, from, to *clientv3.Client, prefix, into string) (n int, err error) {
	start, end, revision := prefix, clientv3.GetPrefixRangeEnd(prefix), int64(0)
	for {
		resp, err := from.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(int64(etcd.DefaultOptions().PageLimit)), clientv3.WithRev(revision))
		if err != nil {
			return n, fmt.Errorf("list %s: %w", prefix, err)
		}
		for part := range slices.Chunk(resp.Kvs, 128) {
			ops := make([]clientv3.Op, len(part))
			for i, kv := range part {
				ops[i] = clientv3.OpPut(into+string(kv.Key[len(prefix):]), string(kv.Value))
			}
			if _, err := to.Txn(ctx).Then(ops...).Commit(); err != nil {
				return n, err
			}
		}
		n += len(resp.Kvs)
		if !resp.More {
			return n, nil
		}
		revision, start = resp.Header.Revision, string(resp.Kvs[len(resp.Kvs)-1].Key)+"\x00"
	}
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

// takeover is how long it takes from the end of a mirror until the one that stood by has
// copied all keys.
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
		p.copyFloor(b, dir) // the servers' caches are warm for everybody
		var mirrors, floors []result
		for b.Loop() {
			for range mirrorRuns {
				floors = append(floors, p.copyFloor(b, dir))
				mirrors = append(mirrors, p.mirror(b, dir, func(string) {}))
			}
		}
		for _, r := range append(floors, mirrors...) {
			if r.Keys != m.keys() {
				b.Fatalf("%d keys were copied, there are %d", r.Keys, m.keys())
			}
		}
		f := m.figures(mirrors, floors)
		heap := most(mirrors, func(r result) float64 { return r.Heap }) / (1 << 20)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(f.agent.median, "s")
		b.ReportMetric(f.floor.median, "floor-s")
		b.ReportMetric(f.ratio, "times-floor")
		b.ReportMetric(heap, "heap-MiB")
		b.ReportMetric(f.peak, "peak-MiB")
		b.Log(m.row(f))
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
