package ipcache

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// snapshotNow returns a snapshot that includes all applied changes.
func snapshotNow(c *Cache) *Snapshot { return c.core.copy(time.Time{}) }

func withIdentities(s *Snapshot, identities ...uint32) (found []*Entry) {
	for e := range s.From(netip.Prefix{}) {
		if slices.Contains(identities, e.Identity()) {
			found = append(found, e)
		}
	}
	return found
}

// TestIdentityIndexFindsWhatAWalkFinds changes claims at random: addresses of both families and networks, also
// contested ones, are added, removed and get other identities. It searches the newest snapshot and older ones.
func TestIdentityIndexFindsWhatAWalkFinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 3))
			clusters := []*Claimant{{"c1", 1}, {"c2", 2}}
			c := New(Rules{})
			x := NewIdentityIndex(c)
			var kept []*Snapshot
			answered := 0
			for range 400 {
				var ops []Op
				for range random.IntN(40) {
					e := NewEntry(Spec{
						Prefix: randomPrefix(random), Cluster: clusters[random.IntN(2)],
						Source: wire.SourceClusterMesh, Identity: uint32(256 + random.IntN(30)),
					})
					if random.IntN(3) == 0 {
						ops = append(ops, Op{Old: e})
					} else {
						ops = append(ops, Op{New: e})
					}
				}
				c.Apply(ops)
				s := snapshotNow(c)
				kept = append(kept, s)
				if random.IntN(4) == 0 {
					s = kept[max(0, len(kept)-1-random.IntN(20))]
				}
				ids := []uint32{uint32(256 + random.IntN(32)), uint32(256 + random.IntN(32))}
				found, ok := x.Find(s, ids, 1<<20)
				if !ok {
					continue // older than the index
				}
				answered++
				if want := withIdentities(s, ids...); !slices.Equal(found, want) {
					t.Fatalf("revision %d: found %d entries with one of %v, there are %d", s.Revision(), len(found), ids, len(want))
				}
			}
			if answered < 300 {
				t.Errorf("only %d of 400 questions were answered", answered)
			}
		})
	}
}

func randomPrefix(random *rand.Rand) netip.Prefix {
	n := byte(random.IntN(250))
	switch random.IntN(4) {
	case 0:
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 15: n}), 128)
	case 1:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 0}), 16)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(random.IntN(4)), n}), 32)
}

// TestIdentityIndexHasBounds: the index reports when there are too many results, and works again after more changes
// than the cache keeps.
func TestIdentityIndexHasBounds(t *testing.T) {
	t.Parallel()
	c := New(Rules{})
	x := NewIdentityIndex(c)
	cluster := &Claimant{"c1", 1}
	fill := func(from, n int, identity uint32) {
		ops := make([]Op, n)
		for i := range ops {
			a := from + i
			ops[i].New = NewEntry(Spec{
				Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(a >> 16), byte(a >> 8), byte(a)}), 32), Cluster: cluster,
				Source: wire.SourceClusterMesh, Identity: identity,
			})
		}
		c.Apply(ops)
	}
	fill(0, 100, 300)
	old := snapshotNow(c)
	if found, ok := x.Find(old, []uint32{300}, 100); !ok || len(found) != 100 {
		t.Errorf("found %d, %v", len(found), ok)
	}
	if _, ok := x.Find(old, []uint32{300}, 99); ok {
		t.Error("100 are no more than 99")
	}
	fill(0, 2*ringSize, 301)
	if found, ok := x.Find(snapshotNow(c), []uint32{300, 301}, 4*ringSize); !ok || len(found) != 2*ringSize {
		t.Errorf("after more than is remembered: %d, %v", len(found), ok)
	}
	if _, ok := x.Find(old, []uint32{300}, 100); ok {
		t.Error("it knows what was before it was made")
	}
	if found, ok := x.Find(snapshotNow(c), []uint32{300}, 100); !ok || len(found) != 0 {
		t.Errorf("nobody has it any more: %d, %v", len(found), ok)
	}
}

// TestIdentityIndexIsSmall: at most eight bytes for each IPv4 address, with as many identities as a large mesh has.
func TestIdentityIndexIsSmall(t *testing.T) {
	t.Parallel()
	const n, identities = 100_000, 10_000
	c := New(Rules{})
	ops := make([]Op, n)
	for i := range ops {
		ops[i].New = NewEntry(Spec{
			Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), Cluster: &Claimant{"c1", 1},
			Source: wire.SourceClusterMesh, Identity: uint32(65536 + i%identities),
		})
	}
	c.Apply(ops)
	x := NewIdentityIndex(c)
	if found, ok := x.Find(snapshotNow(c), []uint32{65536}, n); !ok || len(found) != n/identities {
		t.Fatalf("found %d, %v", len(found), ok)
	}
	const runBytes, placeBytes = 12, 24
	size := 4*cap(x.fours) + placeBytes*cap(x.others) + runBytes*cap(x.runs) + placeBytes*n/laterShare
	if size > 8*n {
		t.Errorf("it takes %d bytes for %d addresses", size, n)
	}
}

// BenchmarkIdentityIndex finds the 200 of a million addresses that have one of 5,000 identities. The floor is a Go map
// from an identity to its entries.
func BenchmarkIdentityIndex(b *testing.B) {
	c := filled(benchEntries(benchSets[0].addr))
	s := snapshotNow(c)
	id := func(i int) []uint32 { return []uint32{uint32(65536 + i%5000)} }
	b.Run("make", func(b *testing.B) {
		base := heaptest.Live()
		var x *IdentityIndex
		for b.Loop() {
			x = NewIdentityIndex(c)
			x.Find(s, id(0), benchSize)
		}
		b.ReportMetric(float64(int64(heaptest.Live())-int64(base))/benchSize, "B/entry")
		runtime.KeepAlive(x)
	})
	b.Run("find", func(b *testing.B) {
		x := NewIdentityIndex(c)
		x.Find(s, id(0), benchSize)
		i := 0
		for b.Loop() {
			i += 7919
			if found, ok := x.Find(s, id(i), benchSize); !ok || len(found) != benchSize/5000 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			if len(withIdentities(s, id(1)...)) != benchSize/5000 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		floor := map[uint32][]*Entry{}
		for e := range s.From(netip.Prefix{}) {
			floor[e.Identity()] = append(floor[e.Identity()], e)
		}
		i := 0
		for b.Loop() {
			i += 7919
			if len(slices.Clone(floor[id(i)[0]])) != benchSize/5000 {
				b.Fatal("not found")
			}
		}
	})
}
