package ipcache

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// BenchmarkJudge is what the rules cost for one claim: where no network is known,
// where only those of the own nodes are, and where the cluster's 5,000 nodes
// announce one each.
func BenchmarkJudge(b *testing.B) {
	entries := benchEntries(benchSets[0].addr)
	own := func(c *core) {
		for i := range 100 {
			c.apply(Op{New: benchNetwork(&Cluster{"own", 9}, wire.SourceKVStore, 11, i)})
		}
	}
	for _, bench := range []struct {
		name    string
		prepare func(*core)
	}{
		{"nothing-known", func(*core) {}},
		{"own-networks", own},
		{"all-networks", func(c *core) {
			own(c)
			for i := range 5000 {
				c.apply(Op{New: benchNetwork(entries[0].cluster, wire.SourceClusterMesh, 10, i)})
			}
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			c := newCore()
			bench.prepare(c)
			i := 0
			for b.Loop() {
				if i++; i == len(entries) {
					i = 0
				}
				if c.judge(entries[i]).broken() {
					b.Fatal("a claim breaks a rule")
				}
			}
		})
	}
}

func benchNetwork(c *Cluster, source wire.Source, first byte, i int) *Entry {
	return NewEntry(Spec{
		Prefix:  netip.PrefixFrom(netip.AddrFrom4([4]byte{first, byte(i >> 8), byte(i), 0}), 24),
		Cluster: c, Kind: KindPodCIDR, Source: source, Identity: wire.IdentityWorld, Name: fmt.Sprint("node-", i),
	})
}

// BenchmarkBreaches asks for the 5,000 backends of a service, none of which breaks a
// rule, beside 5,000 own pod networks.
func BenchmarkBreaches(b *testing.B) {
	c := New()
	for i := range 5000 {
		c.Apply([]Op{{New: NewEntry(Spec{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24), Cluster: &Cluster{"own", 1},
			Kind: KindPodCIDR, Source: wire.SourceKVStore, Name: fmt.Sprint("n", i),
		})}})
	}
	addrs := make([]netip.Addr, 5000)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)})
	}
	for b.Loop() {
		c.Breaches(slices.Values(addrs), func(netip.Addr, Breach) { b.Fatal("there is none") })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(addrs)), "ns/backend")
}
