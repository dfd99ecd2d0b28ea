package scale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/statedb"
	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// runAgent is the agent without its API: the mesh and the view, as the program
// wires them, until every cluster is synced.
func runAgent(ctx context.Context, dir string, keys int) (any, result, error) {
	local := wire.ClusterInfo{Name: "own", ID: 250, MaxConnectedClusters: 255}
	db := statedb.New()
	n, err1 := nodes.New(db)
	s, err2 := services.New(db)
	ids, err3 := allocator.New(db)
	view, err4 := clustermesh.NewView(local, n, s, ids, ipcache.New())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, result{}, err
	}
	m := clustermesh.New(clustermesh.Params{
		Directory: dir, Local: local, SyncTimeout: time.Hour, View: view, KVStore: kvstore.DefaultOptions(),
		Lists: semaphore.NewWeighted(int64(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))),
		Log:   slog.New(slog.DiscardHandler),
	})
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return nil, result{}, fmt.Errorf("the mesh ended: %w", err)
		case <-tick.C:
		}
		if ok, _ := m.Ready(); ok && count(m) >= keys {
			return []any{m, view}, result{Keys: count(m), Prefixes: view.IPs.Len()}, nil
		}
	}
}

func count(m *clustermesh.Mesh) (n int) {
	for _, c := range m.Clusters() {
		for _, s := range c.Sources {
			n += s.Count
		}
	}
	return n
}

// runFloor lists what the agent lists, as many prefixes at a time, and decodes
// nothing.
func runFloor(ctx context.Context, dir string, _ int) (any, result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "cluster*"))
	if err != nil {
		return nil, result{}, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
	counts := make(chan int, 4*len(files))
	for _, file := range files {
		if filepath.Ext(file) != "" {
			continue // a certificate or a key
		}
		cfg, err := clientyaml.NewConfig(file)
		if err != nil {
			return nil, result{}, err
		}
		cfg.Logger = zap.NewNop()
		cfg.DialOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256 << 20))}
		c, err := clientv3.New(*cfg)
		if err != nil {
			return nil, result{}, err
		}
		defer c.Close()
		for _, r := range []wire.Resource{wire.Nodes, wire.Services, wire.IPs, wire.Identities} {
			g.Go(func() error {
				n, err := list(ctx, c, r.Prefix(filepath.Base(file), false))
				counts <- n
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, result{}, err
	}
	close(counts)
	var r result
	for n := range counts {
		r.Keys += n
	}
	return nil, r, nil
}

func list(ctx context.Context, c *clientv3.Client, prefix string) (n int, err error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	revision := int64(0)
	for {
		resp, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(5000), clientv3.WithRev(revision))
		if err != nil {
			return n, err
		}
		n += len(resp.Kvs)
		if !resp.More {
			return n, nil
		}
		revision = resp.Header.Revision
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// BenchmarkScenarioM syncs 464,000 keys of 8 clusters.
func BenchmarkScenarioM(b *testing.B) {
	s := scenarioM()
	dir := startClusters(b, s)
	run(b, "floor", dir, s.keys()) // the servers' caches are warm for everybody
	for _, name := range []string{"floor", "agent"} {
		b.Run(name, func(b *testing.B) {
			var sum result
			for b.Loop() {
				r := run(b, name, dir, s.keys())
				if r.Keys != s.keys() {
					b.Fatalf("%d keys read, want %d", r.Keys, s.keys())
				}
				sum.Seconds += r.Seconds
				sum.CPU += r.CPU
				sum.Heap += r.Heap
				sum.PeakRSS = max(sum.PeakRSS, r.PeakRSS)
			}
			n := float64(b.N)
			b.ReportMetric(sum.Seconds/n, "s/sync")
			b.ReportMetric(sum.CPU/n/float64(s.keys())*1e6, "µs-CPU/entry")
			b.ReportMetric(sum.Heap/n/float64(s.Clusters*s.Each.Addresses), "heap-B/address")
			b.ReportMetric(sum.PeakRSS/(1<<20), "peak-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
