package ipcache

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// manyClaims returns claims of nodes of the clusters on one address.
func manyClaims(n int, p netip.Prefix, clusters ...*Claimant) []*Entry {
	all := make([]*Entry, n)
	for i := range all {
		all[i] = NewEntry(Spec{
			Prefix: p, Cluster: clusters[i%len(clusters)], Kind: KindNode, Source: wire.SourceClusterMesh,
			Identity: wire.IdentityRemoteNode, Name: fmt.Sprintf("node-%06d", i),
		})
	}
	return all
}

// TestManyClaimsOnOneAddress: all claims count, the strongest of each cluster and kind are reported, every node finds
// its own, and after their removal nothing is left.
func TestManyClaimsOnOneAddress(t *testing.T) {
	t.Parallel()
	p := netip.MustParsePrefix("192.168.0.1/32")
	a, b := &Claimant{"a", 1}, &Claimant{"b", 2}
	all := manyClaims(4*MaxReported, p, a, b)
	pod := NewEntry(Spec{Prefix: p, Cluster: b, Kind: KindHost, Source: wire.SourceClusterMesh, Identity: wire.IdentityRemoteNode})
	r := rand.New(rand.NewPCG(1, 1))
	c := New(Rules{})
	for _, i := range r.Perm(len(all)) {
		c.Apply([]Op{{New: all[i]}})
	}
	c.Apply([]Op{{New: pod}})
	found := c.Lookup(p.Addr())
	if want := []*Entry{pod, all[0], all[1]}; !slices.Equal(found.Claims, want) {
		t.Errorf("reported are %+v", found.Claims)
	}
	if want := []Unreported{{Prefix: p, Claims: len(all) - 2}}; !slices.Equal(found.Unreported, want) {
		t.Errorf("not reported are %+v, want %+v", found.Unreported, want)
	}
	if len(found.Strays) != 0 {
		t.Errorf("the nodes' own cluster vouches for them: %+v", found.Strays)
	}
	if claims, conflict := c.Contest(p); !conflict || len(claims) != 3 {
		t.Errorf("%d claims, conflict %t", len(claims), conflict)
	}
	for _, e := range all {
		if own, winner := c.Node(p.Addr(), e.cluster.Name, e.name); own != e || winner != pod {
			t.Fatalf("node %s of %s claims %+v, winner %+v", e.name, e.cluster.Name, own, winner)
		}
	}
	if own, _ := c.Node(p.Addr(), "a", "node-000001"); own != nil {
		t.Errorf("a node of b is found in a: %+v", own)
	}
	left := slices.Clone(all)
	for len(left) > 0 {
		i := r.IntN(len(left))
		c.Apply([]Op{{Old: left[i]}})
		if left = slices.Delete(left, i, i+1); c.Claims() != len(left)+1 || c.LookupWinner(p.Addr()) != pod {
			t.Fatalf("%d claims with %d nodes", c.Claims(), len(left))
		}
		of := func(cluster *Claimant) bool {
			return slices.ContainsFunc(left, func(e *Entry) bool { return e.cluster == cluster })
		}
		if _, conflict := c.Contest(p); conflict != of(a) {
			t.Fatalf("conflict is %t with %d nodes", conflict, len(left))
		}
		if vouched := len(c.Lookup(p.Addr()).Strays) == 0; vouched != of(b) {
			t.Fatalf("the pod on a node's address breaks a rule: %t, with %d nodes", !vouched, len(left))
		}
	}
	c.Apply([]Op{{Old: pod}})
	if k := c.core; k.rivals.tree.Len()+k.contests.Len()+k.winners.Len()+k.strays.all.tree.Len()+k.claims != 0 {
		t.Errorf("something is left: %+v", k)
	}
}

// TestManyStraysOnOneAddress: of the claims that do not count, too, the strongest are reported. All count again when
// they are allowed.
func TestManyStraysOnOneAddress(t *testing.T) {
	t.Parallel()
	p := netip.MustParsePrefix("10.0.0.1/32")
	a, b := &Claimant{"a", 1}, &Claimant{"b", 2}
	all := manyClaims(3*reviewed, p, a, b)
	c := New(Rules{})
	own := NewEntry(Spec{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Cluster: &Claimant{"own", 9}, Kind: KindPodCIDR, Source: wire.SourceKVStore, Name: "n"})
	for _, e := range all {
		c.Apply([]Op{{New: e}})
	}
	for range 2 {
		c.Apply([]Op{{New: own}})
		found := c.Lookup(p.Addr())
		if len(found.Claims) != 1 || found.Claims[0] != own || c.Claims() != 1 {
			t.Fatalf("claims in the own network count: %+v", found.Claims)
		}
		if len(found.Strays) != 2 || !slices.Equal(found.Unreported, []Unreported{{Prefix: p, Barred: true}}) {
			t.Fatalf("reported are %+v; not reported %+v", found.Strays, found.Unreported)
		}
		if tallies, _ := c.Tallies(0); len(tallies) != 2 || tallies[0].Claims+tallies[1].Claims != len(all) {
			t.Fatalf("counted are %+v", tallies)
		}
		c.Apply([]Op{{Old: own}})
		if c.Claims() != len(all) || c.LookupWinner(p.Addr()) != all[0] || c.core.reviews.any() {
			t.Fatalf("%d of %d claims count again", c.Claims(), len(all))
		}
	}
}

// BenchmarkManyClaims measures adding and withdrawing one claim with this many others on the same address. The cost
// must not grow with their number.
func BenchmarkManyClaims(b *testing.B) {
	p := netip.MustParsePrefix("192.168.0.1/32")
	for _, n := range []int{2, 1000, 100_000} {
		for _, bench := range []struct {
			name string
			c    *Cache
		}{{"counting", New(Rules{})}, {"barred", New(Rules{Own: []Own{{p, "service network"}}})}} {
			b.Run(fmt.Sprint(bench.name, "-", n), func(b *testing.B) {
				b.ReportAllocs()
				for _, e := range manyClaims(n, p, &Claimant{"a", 1}, &Claimant{"b", 2}) {
					bench.c.Apply([]Op{{New: e}})
				}
				one := manyClaims(n/2+1, p, &Claimant{"a", 1})[n/2]
				for b.Loop() {
					bench.c.Apply([]Op{{Old: one}})
					bench.c.Apply([]Op{{New: one}})
				}
			})
		}
	}
}
