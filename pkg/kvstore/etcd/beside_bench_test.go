package etcd

import (
	"cmp"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// plainValue and plainList are what other agents make of a list with etcd's own client.
type plainValue struct {
	Data        []byte
	ModRevision uint64
	LeaseID     int64
}

func plainList(tb testing.TB, c *clientv3.Client, prefix string) int {
	resp, err := c.Get(tb.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		tb.Fatal(err)
	}
	pairs := make(map[string]plainValue, resp.Count)
	for _, kv := range resp.Kvs {
		pairs[string(kv.Key)] = plainValue{kv.Value, uint64(kv.ModRevision), kv.Lease}
	}
	return len(pairs)
}

// BenchmarkBeside compares lists and locks with etcd's own client, which checks nothing,
// has no limits and lists without pages. The etcd is in this process: its cost is in both.
func BenchmarkBeside(b *testing.B) {
	const prefix = "cilium/state/ip/v1/default/"
	srv := etcdtest.Start(b)
	for i := range 1000 {
		srv.Put(b, fmt.Sprintf("%s10.0.%d.%d", prefix, i>>8, i&255), benchValue)
	}
	cfg, err := clientfile.New(srv.Endpoint())
	if err != nil {
		b.Fatal(err)
	}
	o := DefaultOptions()
	o.QPS, o.BootstrapQPS = 0, 0
	e, err := Connect(b.Context(), cfg, 0, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Endpoint()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	s, err := concurrency.NewSession(c)
	if err != nil {
		b.Fatal(err)
	}
	list := func(b *testing.B) {
		if _, err := e.List(b.Context(), prefix, func(kvstore.Page) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	lock := func(b *testing.B) {
		l, err := e.Lock(b.Context(), "a/b")
		if err != nil {
			b.Fatal(err)
		}
		l.Unlock()
	}
	plainLock := func(b *testing.B) {
		m := concurrency.NewMutex(s, "a/b")
		if err := cmp.Or(m.Lock(b.Context()), m.Unlock(b.Context())); err != nil {
			b.Fatal(err)
		}
	}
	for _, one := range []struct {
		name string
		do   func(*testing.B)
	}{
		{"list/ours", list},
		{"list/plain", func(b *testing.B) { plainList(b, c, prefix) }},
		{"lock/ours", lock},
		{"lock/plain", plainLock},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				one.do(b)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "CPU-ns/op")
		})
	}
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
