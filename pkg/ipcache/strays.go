package ipcache

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/tidwall/btree"
)

// Stray is a claim that breaks a rule.
type Stray struct {
	Entry  *Entry
	Breach Breach
	// Barred: it does not count. Otherwise it is treated as every claim.
	Barred bool
}

// strays are the claims that break a rule. They may be as many as a hostile
// cluster likes, so that what is told of them is counted here.
type strays struct {
	at       *btree.BTreeG[strayPlace]
	lengths  [hostBits + 1]int // places of each length
	tallies  map[tallyKey]*Tally
	sorted   *btree.BTreeG[Stray] // by cluster and rule, then by place
	revision uint64               // grows with every change
}

// strayPlace has the strays of one place.
type strayPlace struct {
	place  place
	strays []Stray // in the order of their entries; never empty; replaced, never changed
}

type tallyKey struct {
	cluster Cluster
	rule    Rule
}

// Tally counts the claims of one cluster that break one rule.
type Tally struct {
	Cluster Cluster
	Rule    Rule
	Claims  int
	Barred  bool
	Example Stray // the first one of them
}

func newStrays() strays {
	return strays{
		at:      btree.NewBTreeGOptions(func(a, b strayPlace) bool { return a.place.before(b.place) }, btree.Options{NoLocks: true}),
		tallies: make(map[tallyKey]*Tally),
		sorted:  btree.NewBTreeGOptions(func(a, b Stray) bool { return a.compare(b) < 0 }, btree.Options{NoLocks: true}),
	}
}

// compare orders strays by cluster and rule, then by place.
func (s Stray) compare(o Stray) int {
	return cmp.Or(
		s.Entry.cluster.compare(o.Entry.cluster), cmp.Compare(s.Breach.Rule, o.Breach.Rule),
		s.Entry.at.masked(s.Entry.bits).compare(o.Entry.at.masked(o.Entry.bits)), cmp.Compare(s.Entry.bits, o.Entry.bits), s.Entry.Compare(o.Entry),
	)
}

// of are the strays at a place.
func (s *strays) of(p place) []Stray {
	if s.at.Len() == 0 {
		return nil
	}
	found, _ := s.at.Get(strayPlace{place: p})
	return found.strays
}

// set makes the strays of a place these, in any order.
func (s *strays) set(p place, now []Stray) {
	before := s.of(p)
	slices.SortFunc(now, func(a, b Stray) int { return a.Entry.Compare(b.Entry) })
	if slices.Equal(before, now) {
		return
	}
	s.revision++
	switch {
	case len(before) == 0:
		s.lengths[p.bits]++
	case len(now) == 0:
		s.lengths[p.bits]--
	}
	if len(now) == 0 {
		s.at.Delete(strayPlace{place: p})
	} else {
		s.at.Set(strayPlace{p, now})
	}
	s.differ(before, now)
}

// differ takes in what has gone and come at a place. Both lists are in order, and
// there may be thousands, of which mostly one has changed.
func (s *strays) differ(before, now []Stray) {
	for len(before) > 0 || len(now) > 0 {
		switch {
		case len(before) > 0 && len(now) > 0 && before[0] == now[0]:
			before, now = before[1:], now[1:]
		case len(now) == 0 || len(before) > 0 && before[0].Entry.Compare(now[0].Entry) <= 0:
			s.sorted.Delete(before[0])
			s.count(before[0], -1)
			before = before[1:]
		default:
			s.sorted.Set(now[0])
			s.count(now[0], +1)
			now = now[1:]
		}
	}
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
	t.Barred = one.Barred // all have the same rule
}

// covering calls visit with the strays of every place that has the address, the
// longest prefix first.
func (s *strays) covering(a address, visit func([]Stray)) {
	if s.at.Len() == 0 {
		return
	}
	shortest := 0
	if a.is4() {
		shortest = mappedBits
	}
	for bits := hostBits; bits >= shortest; bits-- {
		if s.lengths[bits] == 0 {
			continue
		}
		if found := s.of(place{a.masked(uint8(bits)), uint8(bits)}); len(found) > 0 {
			visit(found)
		}
	}
}

// Strays returns the claims that break a rule and cover the address, the longest
// prefix first.
func (c *Cache) Strays(addr netip.Addr) []Stray {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var found []Stray
	c.core.strays.covering(pack(addr), func(all []Stray) { found = append(found, all...) })
	return found
}

// Tallies counts the claims that break a rule, by cluster and rule, sorted.
// revision grows with every change of them; when it is that of known, nothing has
// changed, and nothing is returned.
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
