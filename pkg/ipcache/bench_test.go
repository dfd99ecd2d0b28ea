package ipcache

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const benchSize = 1_000_000

// benchEntries are pods on nodes of 110, in random order.
func benchEntries(n int) []*Entry {
	cluster := &Cluster{"cluster1", 1}
	entries := make([]*Entry, n)
	for i := range entries {
		entries[i] = NewEntry(Spec{
			Prefix:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32),
			Cluster: cluster, Source: wire.SourceClusterMesh, Identity: uint32(65536 + i%5000),
			HostIP:    netip.AddrFrom4([4]byte{172, 16, byte(i / 110 >> 8), byte(i / 110)}),
			Namespace: fmt.Sprint("namespace-", i%100), Name: fmt.Sprintf("deployment-%d-%d", i%5000, i),
		})
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func filled(entries []*Entry) *Cache {
	c := New()
	ops := make([]Op, 0, maxHold)
	for _, e := range entries {
		if ops = append(ops, Op{New: e}); len(ops) == maxHold {
			c.Apply(ops)
			ops = ops[:0]
		}
	}
	c.Apply(ops)
	return c
}

// BenchmarkFill inserts a million entries; the floor puts the same pointers into
// a Go map.
func BenchmarkFill(b *testing.B) {
	base := liveHeap()
	entries := benchEntries(benchSize)
	objects := liveHeap() - base
	b.Run("cache", func(b *testing.B) {
		var c *Cache
		for b.Loop() {
			c = filled(entries)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSize, "ns/entry")
		b.ReportMetric(float64(liveHeap()-base-objects)/benchSize, "index-B/entry")
		b.ReportMetric(float64(objects)/benchSize, "object-B/entry")
		runtime.KeepAlive(c)
	})
	b.Run("floor-map", func(b *testing.B) {
		var m map[netip.Prefix]*Entry
		for b.Loop() {
			m = make(map[netip.Prefix]*Entry)
			for _, e := range entries {
				m[e.prefix] = e
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSize, "ns/entry")
		b.ReportMetric(float64(liveHeap()-base-objects)/benchSize, "index-B/entry")
		runtime.KeepAlive(m)
	})
	runtime.KeepAlive(entries)
}

// BenchmarkUpdate changes entries of a full cache while snapshots are taken.
func BenchmarkUpdate(b *testing.B) {
	entries := benchEntries(benchSize)
	for _, every := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond} {
		b.Run("snapshot-every-"+every.String(), func(b *testing.B) {
			c := filled(entries)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				tick := time.NewTicker(every)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						c.Snapshot()
					}
				}
			})
			ops := make([]Op, maxHold)
			i := 0
			for b.Loop() {
				for j := range ops {
					e := entries[(i*7919+j)%benchSize]
					changed := *e
					changed.identity += uint32(i + 1)
					ops[j] = Op{Old: e, New: &changed}
				}
				i++
				c.Apply(ops)
			}
			close(stop)
			wg.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxHold, "ns/update")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	entries := benchEntries(benchSize)
	c := filled(entries)
	b.Run("lookup-winner", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i = (i + 7919) % benchSize
			if c.LookupWinner(entries[i].prefix.Addr()) == nil {
				b.Fatal("not found")
			}
		}
	})
	b.Run("page-of-1000", func(b *testing.B) {
		s := c.Snapshot()
		i := 0
		for b.Loop() {
			i = (i + 7919) % benchSize
			n := 0
			for range s.From(entries[i].prefix) {
				if n++; n == 1000 {
					break
				}
			}
		}
	})
}
