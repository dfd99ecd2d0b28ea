package kvbackend_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
)

const (
	benchNodes = 8
	benchKeys  = 10_000
	benchCalls = 16 // concurrent, of each node
)

// spread calls do n times in total, spread over all nodes, with several concurrent calls on each.
func spread(b *testing.B, n int, do func(ctx context.Context, node, i int) error) {
	b.Helper()
	g, ctx := errgroup.WithContext(b.Context())
	for node := range benchNodes {
		for call := range benchCalls {
			g.Go(func() error {
				for i := node + call*benchNodes; i < n; i += benchNodes * benchCalls {
					if err := do(ctx, node, i); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	must(b, g.Wait())
}

func benchClient(b *testing.B, server *etcdtest.Process) *etcd.Session {
	b.Helper()
	cfg, err := clientfile.New(server.Endpoint())
	must(b, err)
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.MaxInflight, o.NoLockQuorumCheck = 0, 0, 0, true
	return sessiontest.ConnectWith(b, cfg, o)
}

// BenchmarkNewKeys allocates 10,000 new keys on 8 nodes. The floor makes the same requests in the same order with bare
// clients, and nothing else: four transactions that write (lock, mapping, reference, unlock) and one that reads
// (references of the key).
func BenchmarkNewKeys(b *testing.B) {
	const least = 70 // % of the floor
	for b.Loop() {
		floor := bareRequests(b)
		server := etcdtest.StartProcess(b)
		var nodes []*allocator.Allocator
		g, ctx := errgroup.WithContext(b.Context())
		ctx, cancel := context.WithCancel(ctx)
		for n := range benchNodes {
			backend, err := kvbackend.New(benchClient(b, server), kvbackend.Config{Paths: paths, Node: fmt.Sprint("10.0.0.", n), Keys: text("")})
			must(b, err)
			a, err := allocator.NewAllocator(backend, allocator.WithMin(firstID), allocator.WithMax(lastID))
			must(b, err)
			g.Go(func() error { return a.Run(ctx) })
			must(b, a.WaitForInitialSync(ctx))
			nodes = append(nodes, a)
		}
		start := time.Now()
		spread(b, benchKeys, func(ctx context.Context, node, i int) error {
			_, _, _, err := nodes[node].Allocate(ctx, text(fmt.Sprintf("k8s:n=%d;", i)))
			return err
		})
		took := time.Since(start)
		cancel()
		_ = g.Wait()
		rate, percent := benchKeys/took.Seconds(), 100*floor.Seconds()/took.Seconds()
		b.ReportMetric(rate, "keys/s")
		b.ReportMetric(benchKeys/floor.Seconds(), "floor-keys/s")
		b.ReportMetric(percent, "%-of-floor")
		if percent < least {
			b.Errorf("%.0f %% of the floor's rate, at least %d %% are wanted", percent, least)
		}
	}
}

// bareRequests returns the time that bare clients need.
func bareRequests(b *testing.B) time.Duration {
	b.Helper()
	server := etcdtest.StartProcess(b)
	var clients []*clientv3.Client
	for range benchNodes {
		clients = append(clients, server.Client(b))
	}
	start := time.Now()
	spread(b, benchKeys, func(ctx context.Context, node, i int) error {
		c, key := clients[node], fmt.Sprintf("%s/value/k8s:n=%d;/10.0.0.%d", base, i, node)
		absent := clientv3.Compare(clientv3.CreateRevision(key+"x"), "=", 0)
		for step := range 5 {
			var err error
			if step == 1 {
				_, err = c.Get(ctx, key, clientv3.WithPrefix())
			} else {
				_, err = c.Txn(ctx).If(absent).Then(clientv3.OpPut(key, "131072")).Else(clientv3.OpGet(key)).Commit()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(start)
}

// BenchmarkCollect runs a round over 65,535 mappings with a reference each, of which one in a thousand is unused for
// the second time. It takes two locks for each of those, and none for the others.
func BenchmarkCollect(b *testing.B) {
	const mappings = 65_535
	server := etcdtest.StartProcess(b)
	client := server.Client(b)
	unusedNow := 0
	for from := 0; from < mappings; from += 50 {
		var ops []clientv3.Op
		for i := from; i < min(from+50, mappings); i++ {
			id, key := fmt.Sprint(firstID+i), fmt.Sprintf("k8s:app=web-%d;k8s:io.cilium.k8s.policy.cluster=east;", i)
			ops = append(ops, clientv3.OpPut(base+"/id/"+id, key))
			if i%1000 == 999 {
				unusedNow++
				continue
			}
			ops = append(ops, clientv3.OpPut(base+"/value/"+key+"/10.0.0.1", id))
		}
		if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	locks := 0
	counting := &faulty{benchClient(b, server), func(point string) error {
		if point == "before lock" {
			locks++
		}
		return nil
	}}
	backend, err := kvbackend.New(counting, kvbackend.Config{Paths: paths, Node: "gc", Keys: text("")})
	must(b, err)
	stale, _, err := backend.RunGC(b.Context(), nil, nil, firstID, lastID)
	if err != nil || len(stale) != unusedNow || locks != 0 {
		b.Fatalf("%d unused, %d locks, %v; want %d and none", len(stale), locks, err, unusedNow)
	}
	var deleted int
	start := time.Now()
	for b.Loop() {
		next, stats, err := backend.RunGC(b.Context(), nil, stale, firstID, lastID)
		must(b, err)
		stale = next
		deleted += stats.Deleted
	}
	if deleted != unusedNow || locks != 2*unusedNow {
		b.Errorf("%d deleted with %d locks, want %d with two each", deleted, locks, unusedNow)
	}
	b.ReportMetric(time.Since(start).Seconds()/float64(b.N), "s/round")
	b.ReportMetric(float64(locks), "locks")
}
