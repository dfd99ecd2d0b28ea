package ipcache

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

const benchSize = 1_000_000

// benchSets are addresses as clusters have them, next to each other in pod CIDRs, and the worst case for a routing
// table: spread over a large part of IPv4.
var benchSets = []struct {
	name string
	addr func(i int) uint32
}{
	{"dense", func(i int) uint32 { return 10<<24 + uint32(i) }},
	{"random", func(i int) uint32 { return 32<<24 | uint32(i)*2654435761&(1<<29-1) }}, // a bijection, without addresses for special use
}

// benchEntries returns pods on nodes with 110 pods each, in random order.
func benchEntries(address func(int) uint32) []*Entry {
	cluster := &Claimant{"cluster1", 1}
	entries := make([]*Entry, benchSize)
	for i := range entries {
		a := address(i)
		entries[i] = NewEntry(Spec{
			Prefix:  netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), 32),
			Cluster: cluster, Source: wire.SourceClusterMesh, Identity: uint32(65536 + i%5000),
			HostIP:    netip.AddrFrom4([4]byte{172, 16, byte(i / 110 >> 8), byte(i / 110)}),
			Namespace: fmt.Sprint("namespace-", i%100), Name: fmt.Sprintf("deployment-%d-%d", i%5000, i),
		})
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries
}

func addresses(entries []*Entry) []netip.Addr {
	out := make([]netip.Addr, len(entries))
	for i, e := range entries {
		out[i] = e.Prefix().Addr()
	}
	return out
}

func filled(entries []*Entry) *Cache {
	c := New(Rules{})
	ops := make([]Op, 0, maxHold)
	for batch := range slices.Chunk(entries, maxHold) {
		ops = ops[:0]
		for _, e := range batch {
			ops = append(ops, Op{New: e})
		}
		c.Apply(ops)
	}
	return c
}

func mapped(entries []*Entry) map[netip.Addr]*Entry {
	m := make(map[netip.Addr]*Entry)
	for _, e := range entries {
		m[e.Prefix().Addr()] = e
	}
	return m
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for the own process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func perItem(b *testing.B, items int, unit string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(items), unit)
}

// BenchmarkFill inserts a million entries. Object-B is the entry with its name; index-B is the memory the cache adds.
// The floor is a Go map of the same pointers.
func BenchmarkFill(b *testing.B) {
	for _, set := range benchSets {
		base := heaptest.Live()
		entries := benchEntries(set.addr)
		list := heaptest.Live()
		b.Run(set.name, func(b *testing.B) {
			var c *Cache
			for b.Loop() {
				c = filled(entries)
			}
			perItem(b, benchSize, "ns/entry")
			b.ReportMetric(float64(list-base)/benchSize-8, "object-B/entry") // without the slice's pointer
			b.ReportMetric(float64(heaptest.Live()-list)/benchSize, "index-B/entry")
			runtime.KeepAlive(c)
		})
		b.Run(set.name+"-floor", func(b *testing.B) {
			var m map[netip.Addr]*Entry
			for b.Loop() {
				m = mapped(entries)
			}
			perItem(b, benchSize, "ns/entry")
			b.ReportMetric(float64(heaptest.Live()-list)/benchSize, "index-B/entry")
			runtime.KeepAlive(m)
		})
		runtime.KeepAlive(entries)
	}
}

// BenchmarkUpdate changes entries of a full cache, in batches of 256, while snapshots are taken and kept. The time
// includes creating the new entries. The floor does the same to a Go map.
func BenchmarkUpdate(b *testing.B) {
	for _, set := range benchSets {
		entries := benchEntries(set.addr)
		for _, every := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond} {
			b.Run(fmt.Sprint(set.name, "-snapshot-every-", every), func(b *testing.B) {
				c := filled(entries)
				var kept *Snapshot
				changes(b, entries, func(ops []Op) {
					c.Apply(ops)
					if kept == nil || time.Since(kept.made) >= every {
						kept = c.Snapshot()
					}
				})
				runtime.KeepAlive(kept)
			})
		}
		b.Run(set.name+"-floor", func(b *testing.B) {
			m := mapped(entries)
			changes(b, entries, func(ops []Op) {
				for _, op := range ops {
					m[op.New.Prefix().Addr()] = op.New
				}
			})
		})
	}
}

// changes applies batches of changes to entries spread over the cache.
func changes(b *testing.B, entries []*Entry, apply func([]Op)) {
	ops := make([]Op, maxHold)
	i := 0
	for b.Loop() {
		for j := range ops {
			e := entries[(i*maxHold+j)*7919%benchSize]
			changed := *e
			changed.identity += uint32(i + 1)
			ops[j] = Op{Old: e, New: &changed}
		}
		i++
		apply(ops)
	}
	perItem(b, maxHold, "ns/update")
}

// BenchmarkLookup finds winners, and every claim that covers an address; the floor finds exact addresses in a Go map.
// Its bound is on CPU time, which depends less than elapsed time on the load of the machine.
func BenchmarkLookup(b *testing.B) {
	const bound = 1000 // ns
	for _, set := range benchSets {
		entries := benchEntries(set.addr)
		addrs := addresses(entries)
		find := func(lookup func(netip.Addr) *Entry) func(*testing.B) {
			return func(b *testing.B) {
				b.ReportAllocs()
				i, start := 0, cpuTime()
				for b.Loop() {
					i = (i + 7919) % benchSize
					if lookup(addrs[i]) == nil {
						b.Fatal("not found")
					}
				}
				took := int64(cpuTime()-start) / int64(b.N)
				b.ReportMetric(float64(took), "CPU-ns/op")
				if took > bound {
					b.Errorf("%d ns of CPU for a lookup, at most %d are allowed", took, bound)
				}
			}
		}
		c, m := filled(entries), mapped(entries)
		b.Run(set.name, find(c.LookupWinner))
		b.Run(set.name+"-all-claims", find(func(a netip.Addr) *Entry { return c.Lookup(a).Claims[0] }))
		b.Run(set.name+"-floor", find(func(a netip.Addr) *Entry { return m[a] }))
	}
}

// BenchmarkLookupBesideBatches looks up while another goroutine applies batches of 5,000 without a pause, and reports
// how long the slowest lookup took.
func BenchmarkLookupBesideBatches(b *testing.B) {
	entries := benchEntries(benchSets[0].addr)
	addrs := addresses(entries)
	c := filled(entries)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ops := make([]Op, 5000)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for j := range ops {
				changed := *entries[(i*len(ops)+j)*7919%benchSize]
				changed.identity += uint32(i + 1)
				ops[j] = Op{New: &changed}
			}
			c.Apply(ops)
		}
	}()
	var took []time.Duration
	i := 0
	for b.Loop() {
		i = (i + 7919) % benchSize
		start := time.Now()
		c.LookupWinner(addrs[i])
		took = append(took, time.Since(start))
	}
	close(stop)
	<-stopped
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

// BenchmarkPage reads 1,000 winners after a cursor; the floor reads them from a sorted slice.
func BenchmarkPage(b *testing.B) {
	entries := benchEntries(benchSets[1].addr)
	s := filled(entries).Snapshot()
	var sorted []*Entry
	for e := range s.From(netip.Prefix{}) {
		sorted = append(sorted, e)
	}
	page := func(b *testing.B, read func(cursor *Entry, yield func(*Entry) bool)) {
		b.ReportAllocs()
		i, sum := 0, uint32(0)
		for b.Loop() {
			i = (i + 7919) % benchSize
			n := 0
			read(entries[i], func(e *Entry) bool {
				sum += e.Identity()
				n++
				return n < 1000
			})
		}
	}
	b.Run("snapshot", func(b *testing.B) {
		page(b, func(cursor *Entry, yield func(*Entry) bool) { s.From(cursor.Prefix())(yield) })
	})
	b.Run("floor", func(b *testing.B) {
		page(b, func(cursor *Entry, yield func(*Entry) bool) {
			i, _ := slices.BinarySearchFunc(sorted, cursor.place(), func(e *Entry, p place) int {
				if e.place().before(p) {
					return -1
				}
				return 1
			})
			for _, e := range sorted[i:] {
				if !yield(e) {
					return
				}
			}
		})
	})
}
