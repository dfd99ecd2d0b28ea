package view

import (
	"net/netip"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// BenchmarkFeedIPs adds changes of addresses to the ring: each entry replaces another one.
func BenchmarkFeedIPs(b *testing.B) {
	const n = 10_000
	f := newFixture(b)
	own := &ipcache.Claimant{Name: "c2", ID: 2}
	entries := make([]*ipcache.Entry, n)
	step := uint32(0)
	ops := make([]ipcache.Op, n)
	for b.Loop() {
		b.StopTimer()
		step++
		for i := range ops {
			now := ipcache.NewEntry(ipcache.Spec{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32), Cluster: own, Identity: step, Namespace: "ns", Name: "pod"})
			ops[i] = ipcache.Op{Old: entries[i], New: now}
			entries[i] = now
		}
		f.ips.Apply(ops)
		b.StartTimer()
		f.Position()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/change")
}
