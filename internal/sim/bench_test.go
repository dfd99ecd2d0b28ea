package sim

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/sim/contents"
)

// BenchmarkLoad reports how fast a cluster is written, mostly IP entries as in
// real meshes.
func BenchmarkLoad(b *testing.B) {
	for _, addresses := range []int{20_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprintf("addresses=%d", addresses), func(b *testing.B) {
			c := contents.Default("cluster1", 1)
			c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = 1000, 2000, 5, 10_000, addresses
			c.PodRange = netip.MustParsePrefix("10.0.0.0/8")
			keys, seconds := 0, 0.0
			for b.Loop() {
				b.StopTimer()
				r, err := Open(b.Context(), c, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				l, err := r.Load(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				keys, seconds = keys+l.Keys, seconds+l.Took.Seconds()
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(keys)/seconds, "keys/s")
		})
	}
}

// BenchmarkChurn reports how many keys per second churn can change, in
// transactions as Run makes them at a high rate.
func BenchmarkChurn(b *testing.B) {
	c := contents.Default("cluster1", 1)
	c.Nodes, c.Services, c.Identities, c.Addresses = 100, 500, 1000, 10_000
	r, err := Open(b.Context(), c, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := r.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("at once=%d", size), func(b *testing.B) {
			keys := 0
			for b.Loop() {
				n, err := r.Churn(b.Context(), size)
				if err != nil {
					b.Fatal(err)
				}
				keys += n
			}
			b.ReportMetric(float64(keys)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
