package syncstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// payload returns n values of 300 to 600 bytes, the size of services.
func payload(n int) (names []string, values [][]byte) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a benchmark
	for i := range n {
		value := make([]byte, 300+random.IntN(301))
		for k := range value {
			value[k] = byte(' ' + random.IntN(90))
		}
		names, values = append(names, fmt.Sprintf("namespace-%d/service-%06d", i%50, i)), append(values, value)
	}
	return names, values
}

// BenchmarkPublish measures publishing 10,000 services, from the first Put until all are acknowledged, and then
// changing one. The floors are a bare client's puts of the same values, one after another and 8 at once.
func BenchmarkPublish(b *testing.B) {
	const n = 10_000
	names, values := payload(n)
	for b.Loop() {
		srv := etcdtest.StartProcess(b)
		c := srv.Client(b)
		one := barePuts(b, c, "bare1/", names[:n/10], values, 1) * 10
		eight := barePuts(b, c, "bare8/", names, values, 8)
		p := publish(b, hurried(), at(srv.Endpoint()), nil)
		p.sync.Complete()
		p.clean()
		start := time.Now()
		for i, name := range names {
			p.sync.Put(name, values[i])
		}
		p.clean()
		took := time.Since(start)
		b.ReportMetric(took.Seconds(), "s/sync")
		b.ReportMetric(one.Seconds(), "s/bare-1")
		b.ReportMetric(eight.Seconds(), "s/bare-8")
		b.ReportMetric(float64(took)/float64(eight), "of-bare-8")
		b.ReportMetric(float64(changeOne(p, names, values[0]).Microseconds()), "µs/change")
		p.stop()
	}
}

// changeOne returns the median time of a single change until it is acknowledged.
func changeOne(p *publisher, names []string, value []byte) time.Duration {
	var all []time.Duration
	for i := range 200 {
		start := time.Now()
		p.sync.Put(names[i], append(slices.Clone(value), 'x'))
		p.clean()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// barePuts returns the time that a bare client needs, with this number of concurrent puts.
func barePuts(b *testing.B, c *clientv3.Client, prefix string, names []string, values [][]byte, at int) time.Duration {
	b.Helper()
	start := time.Now()
	g, ctx := errgroup.WithContext(context.Background())
	for w := range at {
		g.Go(func() error {
			for i := w; i < len(names); i += at {
				if _, err := c.Put(ctx, prefix+names[i], string(values[i])); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(b, g.Wait())
	return time.Since(start)
}

// BenchmarkSyncMemory measures the memory of a Sync for each key, without the bytes of its name, which belong to its
// owner. The Sync holds no values: all are written, and all their events have arrived.
func BenchmarkSyncMemory(b *testing.B) {
	const n = 400_000
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	value := []byte("some value")
	owns := func(int64) bool { return true }
	for b.Loop() {
		before := heaptest.Live()
		l := newLedger(false, true, false)
		l.beginList()
		l.endList(1, owns)
		l.following = true
		l.markComplete()
		for _, name := range names {
			l.put(name, value, time.Now())
		}
		rev := int64(1)
		for l.backlog() > 0 {
			parts, _ := l.takeWrites(kvstore.MaxWrites, transactionBytes, 40, true)
			rev++
			for _, one := range parts {
				l.finish(one, acknowledged, rev, nil, time.Now())
				l.applyEvent([]byte(one.name), &kvstore.Event{KeyValue: kvstore.KeyValue{
					Value: value, ModRevision: rev, Lease: 1 + rev/8,
				}}, owns)
			}
		}
		b.ReportMetric(float64(heaptest.Live()-before)/n, "B/key")
		if !l.isClean() || l.wanted != n {
			b.Fatalf("%d wanted, %d dirty", l.wanted, l.dirty)
		}
	}
}
