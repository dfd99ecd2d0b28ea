package etcd

import (
	"cmp"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
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

// BenchmarkAgainstEtcdsClient compares lists and locks with etcd's own client, which checks nothing,
// has no limits and lists without pages. The etcd is in this process: its cost is in both.
func BenchmarkAgainstEtcdsClient(b *testing.B) {
	srv, e := benchServer(b, 1000)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Endpoint()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	s, err := concurrency.NewSession(c)
	if err != nil {
		b.Fatal(err)
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
		{"list/ours", func(b *testing.B) { benchList(b, e) }},
		{"list/plain", func(b *testing.B) { plainList(b, c, benchPrefix) }},
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
