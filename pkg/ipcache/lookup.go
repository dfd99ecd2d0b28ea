package ipcache

import "net/netip"

// Found is the result of a lookup of an address.
type Found struct {
	// Claims are those that cover the address, the longest prefix first, and for each prefix the winner before those
	// that lost, in their order. The first one is the answer.
	Claims []*Entry
	// Strays are the claims that cover the address and break a rule, the longest prefix first. Those that count are
	// among Claims too.
	Strays []Stray
	// Unreported has an item for each prefix with more than [MaxReported] claims. It is usually nil.
	Unreported []Unreported
}

// Unreported are claims on one prefix that a lookup does not report individually. For each of them, the strongest claim
// of the same cluster, source and kind is reported.
type Unreported struct {
	Prefix netip.Prefix
	Claims int  // how many; 0 for barred claims, which are not counted
	Barred bool // they do not count
}

// Lookup returns the claims that cover the address.
func (c *Cache) Lookup(addr netip.Addr) (found Found) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return found
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.core.routes.covering(addr, func(p place, winner *Entry) { c.core.report(p, winner, &found) })
	c.core.strays.covering(pack(addr), func(p place) { c.core.strays.report(p, &found) })
	return found
}

// report adds the claims that count at a place.
func (c *core) report(p place, winner *Entry, found *Found) {
	at, contested := c.contests.Get(contest{place: p})
	if !contested {
		found.Claims = append(found.Claims, winner)
		return
	}
	n, all := c.rivals.report(p, func(e *Entry) { found.Claims = append(found.Claims, e) })
	if !all {
		found.Unreported = append(found.Unreported, Unreported{Prefix: p.prefix(), Claims: at.claims - n})
	}
}

// report adds the claims at a place that break a rule.
func (s *strays) report(p place, found *Found) {
	barred := false
	_, all := s.all.report(p, func(one Stray) {
		found.Strays = append(found.Strays, one)
		barred = barred || one.Barred
	})
	if !all && barred {
		found.Unreported = append(found.Unreported, Unreported{Prefix: p.prefix(), Barred: true})
	}
}

// Contest returns the strongest claims on exactly this prefix, one of each cluster, source and kind, the winner first.
// It reports whether they are a conflict, which means that they are from more than one cluster.
func (c *Cache) Contest(p netip.Prefix) (claims []*Entry, conflict bool) {
	if !p.IsValid() {
		return nil, false
	}
	at := placeOf(p)
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.core.groupsAt(at, func(e *Entry) bool { claims = append(claims, e); return true })
	rest, _ := c.core.contests.Get(contest{place: at})
	return claims, rest.conflict
}

// Node returns the claim of the node of this name in a cluster on exactly this address, and the winner there. Both may
// be nil.
func (c *Cache) Node(addr netip.Addr, cluster, name string) (own, winner *Entry) {
	if !addr.IsValid() {
		return nil, nil
	}
	at := placeOf(netip.PrefixFrom(addr.Unmap().WithZone(""), addr.Unmap().BitLen()))
	c.mu.RLock()
	defer c.mu.RUnlock()
	winner = c.core.routes.get(at)
	c.core.groupsAt(at, func(e *Entry) bool {
		if e.cluster.Name == cluster && e.fromNode() {
			own = c.core.ofNode(e, name)
		}
		return own == nil
	})
	return own, winner
}

// ofNode finds the claim of a node that corresponds to the claim of another node of its cluster; nil for none.
func (c *core) ofNode(like *Entry, name string) *Entry {
	if like.name == name {
		return like
	}
	search := *like
	search.name = name
	e, _ := c.rivals.tree.Get(&search)
	return e
}

// LookupWinner returns the claim that counts for the address: the winner of
// its longest prefix. It is nil when no cluster claims it.
func (c *Cache) LookupWinner(addr netip.Addr) *Entry {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.routes.longest(addr)
}
