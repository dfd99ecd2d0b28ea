package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// fillIPs claims n addresses.
func (f *fixture) fillIPs(n int) {
	c := &ipcache.Claimant{Name: "c2", ID: 2}
	ops := make([]ipcache.Op, 0, n)
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		ops = append(ops, ipcache.Op{New: ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.PrefixFrom(a, 32), Cluster: c, Source: wire.SourceClusterMesh,
			Identity: 131072, HostIP: ip("192.168.2.1"), Namespace: "default", Name: "pod",
		})})
	}
	f.ips.Apply(ops)
}

// TestStreamEndsWithItsClient: a list whose client has gone is not read to its end.
func TestStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fillIPs(20_000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, target := range map[string]string{"matching": "/v1/ips", "not matching": "/v1/ips?cluster=nope"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &discard{header: make(http.Header)}
			defer func() {
				if cause := recover(); cause != http.ErrAbortHandler {
					t.Errorf("ended with %v", cause)
				}
				if w.n > 1024*300 {
					t.Errorf("wrote %d bytes for nobody", w.n)
				}
			}()
			f.Handler().ServeHTTP(w, request(http.MethodGet, target).WithContext(ctx))
		})
	}
}

// BenchmarkLookup answers lookups among a million addresses and 20,000 services of 10 backends, with all that HTTP
// needs except the connection. One address in five is a backend. The floor is the lookup itself.
func BenchmarkLookup(b *testing.B) {
	const n = 1_000_000
	f := newFixture(b)
	f.fill()
	f.fillIPs(n)
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	var all []*services.Service
	for i := range 20_000 {
		s := &services.Service{Cluster: "c2", ClusterID: 2, Namespace: "many", Name: fmt.Sprint("s", i), Shared: true, Source: wire.SourceClusterMesh}
		for j := range 10 {
			s.Backends = append(s.Backends, services.Backend{IP: addr(10*i + j)})
		}
		all = append(all, s)
	}
	f.services.Apply(created(all...))
	b.Run("floor", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i = (i + 7919) % n
			if len(f.ips.Lookup(addr(i)).Claims) == 0 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("answer", func(b *testing.B) {
		handler := f.Handler()
		handler.ServeHTTP(&discard{header: make(http.Header)}, request(http.MethodGet, "/v1/lookup/10.0.0.0")) // makes the index of services
		asks := make([]*http.Request, 10_000)                                                                  // the client's work is not measured
		for i := range asks {
			asks[i] = request(http.MethodGet, "/v1/lookup/"+addr(i*7919%n).String())
		}
		i, before := 0, cpuTime()
		for b.Loop() {
			i = (i + 1) % len(asks)
			w := &discard{header: make(http.Header)}
			handler.ServeHTTP(w, asks[i])
			if w.n < 500 {
				b.Fatal("no answer")
			}
		}
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "CPU-ns/op")
	})
}

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for the own process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkStreamIPs(b *testing.B) {
	const n = 100_000
	f := newFixture(b)
	f.fillIPs(n)
	b.ReportAllocs()
	for b.Loop() {
		f.Handler().ServeHTTP(&discard{header: make(http.Header)}, request(http.MethodGet, "/v1/ips"))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
}

func BenchmarkPageOfIPs(b *testing.B) {
	f := newFixture(b)
	f.fillIPs(200_000)
	target := "/v1/ips?limit=1000&cursor=" + transport.EncodeCursor("ips", "10.1.0.0/32")
	b.ReportAllocs()
	for b.Loop() {
		f.Handler().ServeHTTP(&discard{header: make(http.Header)}, request(http.MethodGet, target))
	}
}

// discard counts the bytes of an answer and drops them.
type discard struct {
	header http.Header
	status int
	n      int
}

func (d *discard) Header() http.Header    { return d.header }
func (d *discard) WriteHeader(status int) { d.status = status }
func (d *discard) Write(b []byte) (int, error) {
	d.n += len(b)
	return len(b), nil
}
