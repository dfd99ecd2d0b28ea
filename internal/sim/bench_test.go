package sim

import (
	"fmt"
	"net/netip"
	"testing"
)

// BenchmarkLoad reports how fast a cluster is written, mostly IP entries as in
// real meshes.
func BenchmarkLoad(b *testing.B) {
	for _, addresses := range []int{20_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprintf("addresses=%d", addresses), func(b *testing.B) {
			if testing.Short() && addresses > 200_000 {
				b.Skip("a million keys in short mode")
			}
			c := Default("cluster1", 1)
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
