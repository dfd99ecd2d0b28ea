package ipcache

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// claimKey identifies a claim in the naive model.
type claimKey struct {
	prefix  string
	cluster uint32
	kind    Kind
	source  wire.Source
	owner   string
}

func keyOf(e *Entry) claimKey {
	k := claimKey{e.Prefix().String(), e.cluster.ID, e.kind, e.source, ""}
	if e.fromNode() {
		k.owner = e.name
	}
	if e.kind == KindCIDR {
		k.owner = e.at.unpack().String() // with its host bits
	}
	return k
}

// naiveWinner picks the winner without using Compare.
func naiveWinner(claims []*Entry) *Entry {
	rank := func(e *Entry) string {
		return fmt.Sprintf("%03d %d %05d %s", 255-int(e.source), e.kind, e.cluster.ID, keyOf(e).owner)
	}
	return slices.MinFunc(claims, func(a, b *Entry) int {
		if rank(a) < rank(b) {
			return -1
		}
		return 1
	})
}

func drawEntry(t *rapid.T, clusters []*Claimant) *Entry {
	p := netip.MustParsePrefix(rapid.SampledFrom([]string{
		"10.0.0.1/32", "10.0.0.2/32", "10.0.0.0/24", "10.0.0.5/24", "::ffff:10.0.0.6/120",
		"10.0.0.0/16", "0.0.0.0/0", "fd00::1/128", "fd00::/64", "::/0",
	}).Draw(t, "prefix"))
	s := Spec{
		Prefix:   p,
		Cluster:  rapid.SampledFrom(clusters).Draw(t, "cluster"),
		Kind:     rapid.SampledFrom([]Kind{KindHost, KindCIDR, KindNode, KindHealth, KindIngress}).Draw(t, "kind"), // networks: TestRulesAgainstAModel
		Source:   rapid.SampledFrom([]wire.Source{wire.SourceClusterMesh, wire.SourceClusterMesh, wire.SourceLocal}).Draw(t, "source"),
		Identity: uint32(rapid.IntRange(1, 3).Draw(t, "identity")),
		Name:     rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "name"),
	}
	return NewEntry(s)
}

// TestCacheMachine compares the cache with a naive model: a set of claims.
func TestCacheMachine(t *testing.T) {
	t.Parallel()
	clusters := []*Claimant{{"a", 1}, {"b", 2}, {"c", 3}}
	rapid.Check(t, func(t *rapid.T) {
		c := New(Rules{})
		model := map[claimKey]*Entry{}
		f := &follower{winners: map[netip.Prefix]*Entry{}, contested: map[netip.Prefix]bool{}}
		put := func(e *Entry) {
			c.Apply([]Op{{Old: model[keyOf(e)], New: e}})
			model[keyOf(e)] = e
		}
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) { put(drawEntry(t, clusters)) },
			"replay": func(t *rapid.T) {
				e := drawEntry(t, clusters)
				put(e)
				revision := c.Revision()
				again := *e
				c.Apply([]Op{{New: &again}, {Old: e, New: &again}})
				if c.Revision() != revision {
					t.Fatalf("an equal claim moved the revision")
				}
			},
			"withdraw": func(t *rapid.T) {
				e := drawEntry(t, clusters)
				c.Apply([]Op{{Old: e}})
				delete(model, keyOf(e))
			},
			"replace": func(t *rapid.T) { // also with another prefix or another cluster
				old, e := drawEntry(t, clusters), drawEntry(t, clusters)
				c.Apply([]Op{{Old: old, New: e}})
				delete(model, keyOf(old))
				model[keyOf(e)] = e
			},
			"drain a cluster": func(t *rapid.T) {
				gone := rapid.SampledFrom(clusters).Draw(t, "cluster")
				kept := map[*Entry]bool{}
				for e := range c.fresh().From(netip.Prefix{}) {
					kept[e] = e.cluster != gone
				}
				var ops []Op
				for k, e := range model {
					if e.cluster == gone {
						ops = append(ops, Op{Old: e})
						delete(model, k)
					}
				}
				c.Apply(ops)
				for e, stays := range kept {
					if stays && c.LookupPrefix(e.Prefix()) != e {
						t.Fatalf("the winner of %s, of another cluster, became another object", e.Prefix())
					}
				}
			},
			"": func(t *rapid.T) {
				compareWithModel(t, c, model)
				f.follow(t, c)
			},
		})
	})
}

// fresh returns a snapshot of the current state.
func (c *Cache) fresh() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.copy(c.snapshot.Load().made)
}

// LookupPrefix returns the winner at exactly this prefix, for the tests.
func (c *Cache) LookupPrefix(p netip.Prefix) *Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.core.routes.get(placeOf(p))
	return e
}

// Conflicts returns the number of prefixes that more than one cluster claims, for the tests.
func (s *Snapshot) Conflicts() (n int) {
	for range s.Contested() {
		n++
	}
	return n
}

func compareWithModel(t *rapid.T, c *Cache, model map[claimKey]*Entry) {
	byPrefix := map[netip.Prefix][]*Entry{}
	for _, e := range model {
		byPrefix[e.Prefix()] = append(byPrefix[e.Prefix()], e)
	}
	conflicts := 0
	for p, claims := range byPrefix {
		if slices.ContainsFunc(claims, func(e *Entry) bool { return e.cluster != claims[0].cluster }) {
			conflicts++
		}
		want := naiveWinner(claims)
		got := c.LookupPrefix(p)
		if got == nil || keyOf(got) != keyOf(want) || got.Identity() != want.Identity() {
			t.Fatalf("winner of %s is %+v, want %+v", p, got, want)
		}
	}
	s := c.fresh()
	routes := len(c.core.routes.four) + len(c.core.routes.six) + c.core.routes.shorter.Size()
	if s.Len() != len(byPrefix) || c.Len() != len(byPrefix) || c.Claims() != len(model) || s.Conflicts() != conflicts || routes != len(byPrefix) {
		t.Fatalf("%d prefixes (%d, %d routes), %d claims, %d conflicts; want %d, %d, %d",
			s.Len(), c.Len(), routes, c.Claims(), s.Conflicts(), len(byPrefix), len(model), conflicts)
	}
	var all []*Entry
	for e := range s.From(netip.Prefix{}) {
		if routed := c.core.routes.get(e.place()); routed != e {
			t.Fatalf("tree and routes disagree at %s", e.Prefix())
		}
		if len(all) > 0 && !placeOf(all[len(all)-1].Prefix()).before(placeOf(e.Prefix())) {
			t.Fatalf("%s is out of order", e.Prefix())
		}
		if s.Claims(e) != len(byPrefix[e.Prefix()]) {
			t.Fatalf("%d claims on %s, want %d", s.Claims(e), e.Prefix(), len(byPrefix[e.Prefix()]))
		}
		all = append(all, e)
	}
	for i, e := range all {
		rest := slices.Collect(s.From(e.Prefix()))
		if !slices.Equal(rest, all[i+1:]) {
			t.Fatalf("from %s come %d entries, want %d", e.Prefix(), len(rest), len(all)-i-1)
		}
	}
	for _, text := range []string{"10.0.0.1", "10.0.0.9", "10.0.5.5", "11.0.0.1", "fd00::1", "fd00::2", "fe00::"} {
		compareLookup(t, c, byPrefix, netip.MustParseAddr(text))
	}
}

// compareLookup compares a lookup with a search through all prefixes.
func compareLookup(t *rapid.T, c *Cache, byPrefix map[netip.Prefix][]*Entry, addr netip.Addr) {
	var best netip.Prefix
	covering := 0
	for p, claims := range byPrefix {
		if p.Contains(addr) {
			covering += len(claims)
			if !best.IsValid() || p.Bits() > best.Bits() {
				best = p
			}
		}
	}
	winner, chain := c.LookupWinner(addr), c.Lookup(addr).Claims
	if len(chain) != covering {
		t.Fatalf("lookup of %s: %d claims, want %d", addr, len(chain), covering)
	}
	if covering == 0 {
		if winner != nil {
			t.Fatalf("lookup of %s found %s", addr, winner.Prefix())
		}
		return
	}
	if winner != chain[0] || winner.Prefix() != best {
		t.Fatalf("lookup of %s: winner %s, first of the chain %s, want %s", addr, winner.Prefix(), chain[0].Prefix(), best)
	}
	for i := 1; i < len(chain); i++ {
		a, b := chain[i-1], chain[i]
		if a.Prefix() == b.Prefix() && a.Compare(b) >= 0 || a.Prefix() != b.Prefix() && a.Prefix().Bits() < b.Prefix().Bits() {
			t.Fatalf("lookup of %s: candidates out of order", addr)
		}
	}
}

func TestASnapshotNeverChanges(t *testing.T) {
	t.Parallel()
	c := New(Rules{})
	cluster := &Claimant{"a", 1}
	entry := func(i, id int) *Entry {
		return NewEntry(Spec{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32), Cluster: cluster, Identity: uint32(id)})
	}
	var ops []Op
	for i := range 1000 {
		ops = append(ops, Op{New: entry(i, 1)})
	}
	c.Apply(ops)
	s := c.fresh()
	for i := range 1000 {
		c.Apply([]Op{{Old: entry(i, 1), New: entry(i, 2)}})
		if i%2 == 0 {
			c.Apply([]Op{{Old: entry(i, 2)}})
		}
	}
	n := 0
	for e := range s.From(netip.Prefix{}) {
		if n++; e.Identity() != 1 {
			t.Fatalf("%s changed in the snapshot", e.Prefix())
		}
	}
	if n != 1000 || c.Len() != 500 {
		t.Errorf("%d in the snapshot, %d in the cache; want 1000, 500", n, c.Len())
	}
}
