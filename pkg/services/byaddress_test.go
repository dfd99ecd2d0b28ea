package services

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// walk finds the services of an address without the index.
func walk(db *statedb.DB, s *Services, addr netip.Addr) (names []string) {
	for g := range s.Global().All(db.ReadTxn()) {
		if g.HasBackend(addr) {
			names = append(names, g.FullName())
		}
	}
	slices.Sort(names)
	return names
}

func findNames(x *AddressIndex, addr netip.Addr) (names []string) {
	_, found := x.Find(addr)
	for _, g := range found {
		names = append(names, g.FullName())
	}
	return names
}

// TestAddressIndexFindsWhatAWalkFinds changes services at random, with backends that several of them share, that move,
// and that are withheld, until the index has been rebuilt several times.
func TestAddressIndexFindsWhatAWalkFinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			db, s := newServices(t)
			x := NewAddressIndex(db, s.Global())
			addr := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(60))}) }
			if seed%2 == 0 {
				findNames(x, addr()) // builds the index of an empty table
			}
			for step := range 600 {
				changeAtRandom(random, s, addr)
				if random.IntN(3) > 0 && step < 590 {
					continue
				}
				for range 4 {
					a := addr()
					if got, want := findNames(x, a), walk(db, s, a); !slices.Equal(got, want) {
						t.Fatalf("step %d: %s is a backend of %v, the index has %v", step, a, want, got)
					}
				}
			}
			if len(x.places) > cap(x.places) || cap(x.places) > 4*minPlaces {
				t.Errorf("the index has grown to %d of %d places", len(x.places), cap(x.places))
			}
		})
	}
}

func changeAtRandom(random *rand.Rand, s *Services, addr func() netip.Addr) {
	cluster := random.IntN(3) + 1
	name := fmt.Sprint("s", random.IntN(20))
	one := &Service{Cluster: fmt.Sprint("c", cluster), ClusterID: uint32(cluster), Source: wire.SourceClusterMesh, Shared: random.IntN(4) > 0, Namespace: "ns", Name: name}
	switch random.IntN(10) {
	case 0:
		s.Apply([]change{{Name: "ns/" + name, Old: one}})
	case 1:
		s.Withhold(one.Cluster, random.IntN(2) == 0)
	default:
		backends := map[netip.Addr]bool{}
		for range random.IntN(20) {
			backends[addr()] = true
		}
		for a := range backends {
			one.Backends = append(one.Backends, Backend{IP: a})
		}
		slices.SortFunc(one.Backends, func(a, b Backend) int { return a.IP.Compare(b.IP) })
		s.Apply([]change{{Name: "ns/" + name, New: one}})
	}
}

// walked counts the iterations over all services.
type walked struct {
	statedb.Table[*Global]
	times int
}

func (w *walked) All(txn statedb.ReadTxn) iter.Seq2[*Global, statedb.Revision] {
	w.times++
	return w.Table.All(txn)
}

// TestFindDoesNotLookAtEveryService: only the first call iterates over all services. Each later call includes the
// changes since the one before.
func TestFindDoesNotLookAtEveryService(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	table := &walked{Table: s.Global()}
	x := NewAddressIndex(db, table)
	expect := func(want ...string) {
		t.Helper()
		if found := findNames(x, netip.MustParseAddr("10.2.0.1")); !slices.Equal(found, want) {
			t.Errorf("the services are %v, want %v", found, want)
		}
	}
	with := func(name string, addrs ...string) {
		one := &Service{Cluster: "c2", ClusterID: 2, Namespace: "ns", Name: name, Source: wire.SourceClusterMesh, Shared: true}
		for _, a := range addrs {
			one.Backends = append(one.Backends, Backend{IP: netip.MustParseAddr(a)})
		}
		s.Apply([]change{{Name: "ns/" + name, New: one}})
	}
	expect()
	before := table.times
	with("web", "10.2.0.1")
	with("other", "10.2.0.2")
	expect("ns/web")
	with("db", "10.2.0.1", "10.2.0.3")
	expect("ns/db", "ns/web")
	with("web", "10.2.0.4")
	expect("ns/db")
	if table.times != before {
		t.Errorf("Find has looked at every service %d times", table.times-before)
	}
}

// TestAddressIndexOfManyServicesWithOneAddress: a cluster that uses one address in all services costs no more than one
// that does not.
func TestAddressIndexOfManyServicesWithOneAddress(t *testing.T) {
	t.Parallel()
	const n = 3000
	db, s := newServices(t)
	x := NewAddressIndex(db, s.Global())
	a := netip.MustParseAddr("10.0.0.1")
	for range 3 {
		var batch []change
		for i := range n {
			batch = append(batch, change{Name: fmt.Sprint("ns/s", i), New: &Service{
				Cluster: "c1", ClusterID: 1, Source: wire.SourceClusterMesh, Shared: true, Namespace: "ns", Name: fmt.Sprint("s", i),
				Backends: []Backend{{IP: a, Zone: fmt.Sprint(x.revision)}},
			}})
		}
		s.Apply(batch)
		if found := findNames(x, a); len(found) != n || !slices.IsSorted(found) {
			t.Fatalf("found %d services", len(found))
		}
		if len(x.places) > 2*n {
			t.Errorf("%d places for %d backends", len(x.places), n)
		}
	}
}
