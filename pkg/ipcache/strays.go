package ipcache

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"
)

// Stray is a claim that breaks a rule.
type Stray struct {
	Entry  *Entry
	Breach Breach
	// Barred: it does not count. Otherwise it is treated like any claim.
	Barred bool
}

func (s Stray) claim() *Entry { return s.Entry }

// strays are the claims that break a rule. A hostile cluster can have any number of them, so they are counted here,
// when they change.
type strays struct {
	all      claimSet[Stray]
	lengths  [hostBits + 1]int // claims on prefixes of each length
	tallies  map[tallyKey]*Tally
	sorted   *btree.BTreeG[Stray] // by cluster and rule, then by place
	revision uint64               // grows with every change
}

type tallyKey struct {
	cluster Claimant
	rule    Rule
}

// Tally counts the claims of one cluster that break one rule.
type Tally struct {
	Cluster Claimant
	Rule    Rule
	Claims  int
	Barred  bool
	Example Stray // the first one in the order
}

// compare orders strays by cluster and rule, then by place.
func (s Stray) compare(o Stray) int {
	return cmp.Or(
		s.Entry.cluster.compare(o.Entry.cluster), cmp.Compare(s.Breach.Rule, o.Breach.Rule),
		s.Entry.at.masked(s.Entry.bits).compare(o.Entry.at.masked(o.Entry.bits)), cmp.Compare(s.Entry.bits, o.Entry.bits), s.Entry.Compare(o.Entry),
	)
}

// find returns the stray for a claim, if there is one.
func (s *strays) find(e *Entry) (Stray, bool) { return s.all.tree.Get(Stray{Entry: e}) }

// put stores that a claim breaks a rule.
func (s *strays) put(now Stray) {
	before, known := s.all.tree.Set(now)
	switch {
	case known && before == now:
		return
	case known:
		s.sorted.Delete(before)
		s.count(before, -1)
	default:
		s.lengths[now.Entry.bits]++
	}
	s.revision++
	s.sorted.Set(now)
	s.count(now, +1)
}

// drop removes a claim, if it is one that breaks a rule.
func (s *strays) drop(e *Entry) {
	if before, known := s.all.tree.Delete(Stray{Entry: e}); known {
		s.revision++
		s.lengths[e.bits]--
		s.sorted.Delete(before)
		s.count(before, -1)
	}
}

// any reports whether a place has strays.
func (s *strays) any(p place) (found bool) {
	if s.lengths[p.bits] > 0 {
		s.all.at(strongest(p), func(Stray) bool { found = true; return false })
	}
	return found
}

func (s *strays) count(one Stray, by int) {
	key := tallyKey{*one.Entry.cluster, one.Breach.Rule}
	t := s.tallies[key]
	if t == nil {
		t = &Tally{Cluster: key.cluster, Rule: key.rule}
		s.tallies[key] = t
	}
	if t.Claims += by; t.Claims == 0 {
		delete(s.tallies, key)
		return
	}
	t.Barred = one.Barred // the same for all claims with this cluster and rule
}

// covering calls visit with every place that contains the address and may have strays, the longest prefix first.
func (s *strays) covering(a address, visit func(place)) {
	if s.all.tree.Len() == 0 {
		return
	}
	shortest := 0
	if a.is4() {
		shortest = mappedBits
	}
	for bits := hostBits; bits >= shortest; bits-- {
		if s.lengths[bits] > 0 {
			visit(place{a.masked(uint8(bits)), uint8(bits)})
		}
	}
}

// Tallies returns the number of claims that break a rule, by cluster and rule, sorted. revision grows with every change
// of them; if it equals known, nothing has changed, and no tallies are returned.
func (c *Cache) Tallies(known uint64) (tallies []Tally, revision uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := &c.core.strays
	if s.revision == known {
		return nil, known
	}
	for _, t := range s.tallies {
		tally := *t
		first := Stray{Entry: &Entry{cluster: &tally.Cluster}, Breach: Breach{Rule: tally.Rule}}
		s.sorted.Ascend(first, func(one Stray) bool { tally.Example = one; return false })
		tallies = append(tallies, tally)
	}
	slices.SortFunc(tallies, func(a, b Tally) int {
		return cmp.Or(a.Cluster.compare(&b.Cluster), cmp.Compare(a.Rule, b.Rule))
	})
	return tallies, s.revision
}
