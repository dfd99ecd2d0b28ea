package findings

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkIdentities takes in 100,000 identities and reports what is kept of each.
func BenchmarkIdentities(b *testing.B) {
	all := make([]*allocator.Identity, 100_000)
	for i := range all {
		all[i] = &allocator.Identity{ID: 2<<16 + uint32(i), Cluster: "c2", ClusterID: 2, Labels: allocator.NewLabels(wire.ParseLabels(fmt.Sprintf(
			"k8s:app=app-%d;k8s:io.cilium.k8s.policy.cluster=c2;k8s:io.kubernetes.pod.namespace=ns-%d;k8s:tier=front;k8s:version=v1;", i, i%100)))}
	}
	var d *duplicates
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		d = newDuplicates(func(string, uint32) *allocator.Identity { return nil })
		for _, i := range all {
			d.set(i, false)
		}
		var v verdicts
		d.look(&v)
	}
	b.ReportMetric(float64(heap()-before)/float64(len(all)), "B/identity")
	runtime.KeepAlive(d)
	runtime.KeepAlive(all)
}

// BenchmarkNodes takes in 5,000 nodes of a cluster inside a pod network of another
// one, and reports what is kept of each.
func BenchmarkNodes(b *testing.B) {
	all := make([]*nodes.Node, 5000)
	for i := range all {
		all[i] = &nodes.Node{
			Cluster: "c2", ClusterID: 2, Name: fmt.Sprint("node-", i), Source: wire.SourceClusterMesh,
			Addresses: []nodes.Address{{Type: wire.AddressInternalIP, IP: netip.AddrFrom4([4]byte{192, 168, byte(i >> 8), byte(i)})}},
			PodCIDRs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)},
		}
	}
	outer := &nodes.Node{Cluster: "c3", ClusterID: 3, Name: "n", Source: wire.SourceClusterMesh, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	var d *networks
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		d = newNetworks()
		d.set(outer, false)
		var v verdicts
		for i, n := range all {
			if d.set(n, false); i%100 == 0 {
				d.look(&v) // as batches come
			}
		}
		if d.look(&v); len(d.book.listed) != 1 {
			b.Fatal(d.book)
		}
	}
	b.ReportMetric(float64(heap()-before)/float64(len(all)), "B/node")
	runtime.KeepAlive(d)
	runtime.KeepAlive(all)
}

// BenchmarkIdleLook is a look at which nothing has changed.
func BenchmarkIdleLook(b *testing.B) {
	w := newWorld(b)
	w.look()
	b.ReportAllocs()
	for b.Loop() {
		w.watch.Look(w.now)
	}
}

// BenchmarkExports is a look when another one of 100 clusters exports the same 1,000
// services as all the others.
func BenchmarkExports(b *testing.B) {
	w := newWorld(b)
	apply := func(cluster int, created int64) {
		changes := make([]store.Change[services.Export], 1000)
		for i := range changes {
			x := export(fmt.Sprint("c", cluster), fmt.Sprint("svc-", i), created, 0).(anExport).Export
			changes[i] = store.Change[services.Export]{Name: x.FullName(), New: x}
		}
		w.services.ApplyExports(changes)
	}
	for cluster := range 100 {
		apply(cluster, 1)
	}
	w.look()
	b.ReportAllocs()
	created := int64(1)
	for b.Loop() {
		b.StopTimer()
		created++
		apply(99, created)
		b.StartTimer()
		w.watch.Look(w.now)
	}
}
