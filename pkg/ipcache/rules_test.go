package ipcache

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// world is a naive model of the rules: all claims, and no derived state.
type world struct {
	rules  Rules
	claims map[claimKey]*Entry
}

// specials are the prefixes in these tests for special use, which no cluster may claim.
var specials = []string{"0.0.0.0/0", "127.0.0.1/32", "169.254.169.254/32", "10.0.0.0/7", "fe80::1/128", "::/0"}

func (w *world) announces(cluster *Claimant, p netip.Prefix) bool {
	for _, e := range w.claims {
		if w.announcement(e) && *e.cluster == *cluster && covers(e.Prefix(), p) {
			return true
		}
	}
	return false
}

// announcement reports whether the claim is a valid pod network of a remote cluster, outside of the own networks.
func (w *world) announcement(e *Entry) bool {
	if least := map[bool]int{true: 16, false: 48}[e.Prefix().Addr().Is4()]; e.Prefix().Bits() < least {
		return false
	}
	return e.kind == KindPodCIDR && e.source == wire.SourceClusterMesh && !slices.Contains(specials, e.Prefix().String()) && !w.own(e.Prefix())
}

func (w *world) own(p netip.Prefix) bool {
	for _, o := range w.rules.Own {
		if covers(o.Prefix, p) || covers(p, o.Prefix) {
			return true
		}
	}
	for _, e := range w.claims {
		if e.kind == KindPodCIDR && e.source != wire.SourceClusterMesh && !slices.Contains(specials, e.Prefix().String()) &&
			(covers(e.Prefix(), p) || covers(p, e.Prefix())) {
			return true
		}
	}
	return false
}

func covers(outer, p netip.Prefix) bool { return outer.Contains(p.Addr()) && outer.Bits() <= p.Bits() }

// rule returns the rule that the claim breaks, as defined in docs/claims.md.
func (w *world) rule(e *Entry) Rule {
	p := e.Prefix()
	if e.source != wire.SourceClusterMesh {
		return 0
	}
	if w.own(p) {
		return RuleOwnNetwork
	}
	if slices.Contains(specials, p.String()) {
		return RuleSpecialUse
	}
	if e.kind != KindPodCIDR && e.kind != KindNode && !w.announces(e.cluster, p) {
		for _, o := range w.claims {
			if w.announcement(o) && *o.cluster != *e.cluster && covers(o.Prefix(), p) {
				return RuleForeignNetwork
			}
		}
	}
	if e.kind == KindHost || e.kind == KindCIDR {
		switch e.identity {
		case wire.IdentityWorld, wire.IdentityKubeAPIServer:
			return RuleReservedIdentity
		case wire.IdentityRemoteNode:
			for _, o := range w.claims {
				if o.kind == KindNode && *o.cluster == *e.cluster && o.Prefix() == p && !w.barred(o) {
					return 0
				}
			}
			return RuleReservedIdentity
		}
	}
	return 0
}

func (w *world) barred(e *Entry) bool {
	r := w.rule(e)
	return r == RuleOwnNetwork || r != 0 && w.rules.Enforce
}

// claim draws a claim from a small set, in which many collide.
func (w *world) claim(r *rand.Rand, clusters []*Claimant) *Entry {
	pick := func(texts []string) netip.Prefix { return netip.MustParsePrefix(texts[r.IntN(len(texts))]) }
	s := Spec{Cluster: clusters[r.IntN(len(clusters))], Source: wire.SourceClusterMesh, Name: fmt.Sprint("n", r.IntN(2))}
	if s.Cluster == clusters[0] {
		s.Source = wire.SourceKVStore
	}
	switch r.IntN(5) {
	case 0:
		s.Kind, s.Identity = KindPodCIDR, wire.IdentityWorld
		s.Prefix = pick([]string{"10.0.0.0/16", "10.0.1.0/24", "10.0.1.128/25", "10.0.2.0/24", "fd00::/64", "fd00::1:0/112", "10.0.0.0/7", "0.0.0.0/0", "10.0.0.0/8", "172.0.0.0/8"})
	case 1:
		s.Kind, s.Identity = []Kind{KindNode, KindHealth, KindIngress}[r.IntN(3)], wire.IdentityRemoteNode
		s.Prefix = pick([]string{"10.0.1.1/32", "10.0.2.1/32", "192.168.0.1/32", "fd00::1:1/128", "169.254.169.254/32"})
	default:
		s.Kind, s.Identity = KindHost, []uint32{wire.IdentityRemoteNode, wire.IdentityKubeAPIServer, wire.IdentityHealth, 65537, 131072, 65538}[r.IntN(6)]
		s.Prefix = pick([]string{
			"10.0.1.1/32", "10.0.1.200/32", "10.0.2.1/32", "10.0.9.9/32", "10.5.0.1/32", "192.168.0.1/32", "fd00::5/128", "fd00::1:1/128",
			"127.0.0.1/32", "169.254.169.254/32", "fe80::1/128",
		})
		if r.IntN(4) == 0 {
			s.Kind = KindCIDR
			s.Prefix = pick([]string{"10.0.1.0/24", "10.0.1.1/32", "10.0.0.0/16", "10.0.0.0/12", "0.0.0.0/0", "::/0", "fd00::/64", "172.20.0.0/16", "172.20.0.8/29", "172.16.0.0/12", "fd00::/32"})
		}
	}
	return NewEntry(s)
}

// TestRulesAgainstAModel makes 1,000 random worlds and compares each of them with the model repeatedly.
func TestRulesAgainstAModel(t *testing.T) {
	t.Parallel()
	clusters := []*Claimant{{"own", 9}, {"a", 1}, {"b", 2}, {"c", 3}}
	fired := make(map[Rule]int)
	seeds := 1000
	if testing.Short() {
		seeds = 60
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &world{rules: Rules{Enforce: seed%2 == 0}, claims: make(map[claimKey]*Entry)}
		if seed%3 == 0 {
			w.rules.Own = []Own{{netip.MustParsePrefix("172.20.0.0/16"), "service network"}}
		}
		c := New(w.rules)
		for range 16 {
			var ops []Op
			for range 1 + r.IntN(6) {
				ops = append(ops, w.step(r, clusters))
			}
			c.Apply(ops)
			if r.IntN(4) == 0 {
				w.compare(t, c, seed, fired)
			}
		}
		w.compare(t, c, seed, fired)
		if t.Failed() {
			return
		}
	}
	for _, rule := range []Rule{0, RuleOwnNetwork, RuleSpecialUse, RuleForeignNetwork, RuleReservedIdentity} {
		if fired[rule] < seeds {
			t.Errorf("rule %d fired %d times only", rule, fired[rule])
		}
	}
}

// step adds, changes, moves or withdraws a claim.
func (w *world) step(r *rand.Rand, clusters []*Claimant) Op {
	var op Op
	keys := slices.SortedFunc(maps.Keys(w.claims), claimKey.compare)
	if len(keys) > 0 && r.IntN(3) == 0 {
		op.Old = w.claims[keys[r.IntN(len(keys))]]
		delete(w.claims, keyOf(op.Old))
	}
	if op.Old == nil || r.IntN(2) == 0 {
		op.New = w.claim(r, clusters)
		w.claims[keyOf(op.New)] = op.New
	}
	return op
}

func (k claimKey) compare(o claimKey) int {
	return cmp.Or(strings.Compare(k.prefix, o.prefix), cmp.Compare(k.cluster, o.cluster), cmp.Compare(k.kind, o.kind), cmp.Compare(k.source, o.source), strings.Compare(k.owner, o.owner))
}

func (w *world) compare(t *testing.T, c *Cache, seed uint64, fired map[Rule]int) {
	t.Helper()
	byPrefix, strays, count := map[netip.Prefix][]*Entry{}, 0, 0
	tallies := map[tallyKey]int{}
	for _, e := range w.claims {
		rule := w.rule(e)
		fired[rule]++
		if rule != 0 {
			strays++
			tallies[tallyKey{*e.cluster, rule}]++
		}
		found := Breach{}
		for _, s := range c.Lookup(e.Prefix().Addr()).Strays {
			if s.Entry.Prefix() == e.Prefix() && s.Entry.same(e) {
				found = s.Breach
				if s.Barred != w.barred(e) {
					t.Errorf("world %d: %s of %s: barred is %v", seed, e.Prefix(), e.cluster.Name, s.Barred)
				}
			}
		}
		if found.Rule != rule {
			t.Errorf("world %d: %s %s of %s breaks rule %d (%s), want %d", seed, e.kind, e.Prefix(), e.cluster.Name, found.Rule, found, rule)
		}
		if !w.barred(e) {
			byPrefix[e.Prefix()] = append(byPrefix[e.Prefix()], e)
			count++
		}
	}
	listed, _ := c.Tallies(0)
	if len(listed) != len(tallies) {
		t.Errorf("world %d: %d tallies, want %d", seed, len(listed), len(tallies))
	}
	for _, tally := range listed {
		if tallies[tallyKey{tally.Cluster, tally.Rule}] != tally.Claims {
			t.Errorf("world %d: %s breaks rule %d %d times, want %d", seed, tally.Cluster.Name, tally.Rule, tally.Claims, tallies[tallyKey{tally.Cluster, tally.Rule}])
		}
	}
	if c.Len() != len(byPrefix) || c.Claims() != count {
		t.Errorf("world %d: %d prefixes and %d claims count, want %d and %d", seed, c.Len(), c.Claims(), len(byPrefix), count)
	}
	for _, text := range []string{
		"10.0.1.1", "10.0.1.200", "10.0.1.5", "10.0.2.1", "10.0.9.9", "10.5.0.1", "10.9.9.9", "192.168.0.1", "fd00::5", "fd00::1:1", "fd00::1:2",
		"127.0.0.1", "169.254.169.254", "fe80::1", "8.8.8.8", "172.20.0.9", "172.20.1.1",
	} {
		addr := netip.MustParseAddr(text)
		var want *Entry
		for p, claims := range byPrefix {
			if p.Contains(addr) && (want == nil || p.Bits() > want.Prefix().Bits()) {
				want = naiveWinner(claims)
			}
		}
		got := c.LookupWinner(addr)
		if (got == nil) != (want == nil) || got != nil && (keyOf(got) != keyOf(want) || got.Prefix() != want.Prefix()) {
			t.Errorf("world %d: %s is that of %v, want %v", seed, addr, got, want)
		}
	}
}
