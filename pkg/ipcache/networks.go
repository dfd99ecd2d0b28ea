package ipcache

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Own is a network of the own cluster that is known from its configuration.
type Own struct {
	Prefix netip.Prefix
	What   string // as in "pod network"
}

// Rules configures which claims of remote clusters count.
type Rules struct {
	// Own are networks of the own cluster, in addition to the pod networks that its nodes announce.
	Own []Own
	// Enforce: no claim that breaks a rule counts. Otherwise only claims inside the own networks do not count, and all
	// others are only noted.
	Enforce bool
}

// networks has the owners of networks: those that the nodes of the clusters announce, and the configured ones of the
// own cluster.
type networks struct {
	enforce   bool
	own       bart.Table[owned]
	announced bart.Table[[]holder] // by remote clusters; lists are replaced, never changed in place

	ownRevision uint64 // grows with every change of the set of networks in own
}

// owned is a network of the own cluster.
type owned struct {
	n    int // number of claims and settings for this network
	what string
}

// holder is a remote cluster that announces a pod network.
type holder struct {
	cluster *Claimant
	nodes   int // how many of its nodes announce it
}

// remote reports whether a claim is judged: claims of the own cluster are not.
func (e *Entry) remote() bool { return e.source <= wire.SourceClusterMesh }

// Breach is the rule that a claim breaks. Its zero value means none.
type Breach struct {
	Rule    Rule         // 0, or one from RuleOwnNetwork on
	Network netip.Prefix // the network that contains the claim; invalid when the breach is about an identity
	Around  bool         // the claim contains the network instead
	Whose   string       // the network's cluster, or its use
}

// broken reports whether the claim breaks a rule.
func (b Breach) broken() bool { return b.Rule != 0 }

// String describes the problem of the claim.
func (b Breach) String() string {
	switch b.Rule {
	case RuleOwnNetwork:
		where := "inside"
		if b.Around {
			where = "around"
		}
		return fmt.Sprintf("%s %s, a %s of the own cluster, which no remote can have", where, b.Network, b.Whose)
	case RuleSpecialUse:
		if b.Network.Bits() == 0 {
			return fmt.Sprintf("%s is %s", b.Network, b.Whose)
		}
		return fmt.Sprintf("in %s: %s", b.Network, b.Whose)
	case RuleForeignNetwork:
		return fmt.Sprintf("inside %s, a pod network that nodes of %s announce and nodes of its own cluster do not", b.Network, b.Whose)
	case RuleReservedIdentity:
		return fmt.Sprintf("it has the reserved identity %s, which a remote cluster must not claim", b.Whose)
	default:
		return ""
	}
}

// bars reports whether a claim with this breach does not count.
func (n *networks) bars(b Breach) bool {
	return b.Rule == RuleOwnNetwork || b.broken() && n.enforce
}

// judge returns the first rule that a claim breaks. atNode reports whether the claim's cluster has a node with that
// address.
func (n *networks) judge(e *Entry, atNode func() bool) Breach {
	if !e.remote() {
		return Breach{}
	}
	p := e.place()
	if n.own.Size() > 0 {
		if b := n.inOwn(p); b.broken() {
			return b
		}
	}
	if maybeSpecial(p) {
		if b := special(p.prefix()); b.broken() {
			return b
		}
	}
	// A pod network needs no other announcement. A node's address is given by the network of the node, and a claim of a
	// pod on the same address precedes it by its kind.
	if n.announced.Size() > 0 && e.kind != KindPodCIDR && e.kind != KindNode {
		if b := n.foreign(p, e.cluster); b.broken() {
			return b
		}
	}
	if e.identity < wire.IdentityReservedEnd && !e.fromNode() && claims.Privileged(e.identity, false) && claims.Privileged(e.identity, atNode()) {
		name, _ := wire.ReservedIdentityName(e.identity)
		return Breach{Rule: RuleReservedIdentity, Whose: name}
	}
	return Breach{}
}

// inOwn finds the network of the own cluster that contains a place, or is contained in it. A shorter prefix would win
// all addresses of the network that no longer prefix claims; for a large network, this may be all of it.
func (n *networks) inOwn(p place) Breach {
	if _, inside := lookup(&n.own, p); inside {
		network, is, _ := n.own.LookupPrefixLPM(p.prefix())
		return Breach{Rule: RuleOwnNetwork, Network: network, Whose: is.what}
	}
	if p.host() {
		return Breach{}
	}
	for network, is := range n.own.Subnets(p.prefix()) {
		return Breach{Rule: RuleOwnNetwork, Network: network, Around: true, Whose: is.what}
	}
	return Breach{}
}

// lookup finds the longest network that a place is in; a single address is found faster.
func lookup[V any](t *bart.Table[V], p place) (V, bool) {
	if p.host() {
		return t.Lookup(p.at.unpack())
	}
	return t.LookupPrefix(p.prefix())
}

// foreign finds the pod network of other clusters that contains a place. It finds none when the cluster itself
// announces a network that contains the place.
func (n *networks) foreign(at place, cluster *Claimant) Breach {
	ours := func(h holder) bool { return same(h.cluster, cluster) }
	if holders, inside := lookup(&n.announced, at); !inside || slices.ContainsFunc(holders, ours) {
		return Breach{}
	}
	b := Breach{Rule: RuleForeignNetwork}
	for network, holders := range n.announced.Supernets(at.prefix()) { // the longest first
		if slices.ContainsFunc(holders, ours) {
			return Breach{}
		}
		if b.Whose == "" {
			b.Network, b.Whose = network, holders[0].cluster.Name
		}
	}
	return b
}

func same(a, b *Claimant) bool { return a == b || *a == *b }

// maybeSpecial is a quick check: it returns false when the place neither is in a range for special use nor contains
// one.
func maybeSpecial(p place) bool {
	if p.at.is4() {
		return p.bits < mappedBits+16 || maybeSpecial4(uint16(p.at.lo>>16))
	}
	return p.bits < 32 || maybeSpecial6(uint32(p.at.hi>>32))
}

func maybeSpecial4(first uint16) bool {
	switch first {
	case 100<<8 | 100, 168<<8 | 63, 169<<8 | 254, 192 << 8, 192<<8 | 88:
		return true
	}
	return first < 1<<8 || first>>8 == 127 || first >= 224<<8
}

func maybeSpecial6(first uint32) bool {
	switch first {
	case 0x64ff9b, 0x2001_0000, 0xfd00_0ec2, 0xfd20_00ce:
		return true
	}
	return first < 1<<16 || first>>16 == 0x100 || first>>16 == 0x2002 || first >= 0xfe80_0000
}

func special(p netip.Prefix) Breach {
	if r, is := claims.Special(p); is {
		return Breach{Rule: RuleSpecialUse, Network: r.Prefix, Whose: r.Name}
	}
	return Breach{}
}

// announces reports whether the claim makes its cluster the owner of a network. Networks that are too large for that
// are ignored, unless they are of the own cluster; networks for special use are always ignored.
func (e *Entry) announces() bool {
	if e.kind != KindPodCIDR {
		return false
	}
	p := e.place()
	if e.remote() && !claims.SaysWhose(p.prefix()) {
		return false
	}
	return !maybeSpecial(p) || !special(p.prefix()).broken()
}

// count takes in that an announcement of a network was added (+1) or removed (-1), and reports whether the owners of
// the network have changed.
func (n *networks) count(e *Entry, by int) (changed bool) {
	p := e.place().prefix()
	if !e.remote() {
		return n.countOwn(Own{p, "pod network"}, by)
	}
	holders, _ := n.announced.Get(p)
	holders = slices.Clone(holders)
	i := slices.IndexFunc(holders, func(h holder) bool { return same(h.cluster, e.cluster) })
	if changed = i < 0; changed {
		i, holders = len(holders), append(holders, holder{cluster: e.cluster})
	}
	if holders[i].nodes += by; holders[i].nodes == 0 {
		holders, changed = slices.Delete(holders, i, i+1), true
	}
	if len(holders) == 0 {
		n.announced.Delete(p)
		return true
	}
	slices.SortFunc(holders, func(a, b holder) int { return a.cluster.compare(b.cluster) })
	n.announced.Insert(p, holders)
	return changed
}

// countOwn is count for a network of the own cluster.
func (n *networks) countOwn(o Own, by int) (changed bool) {
	is, known := n.own.Get(o.Prefix)
	if !known {
		is.what = o.What
	}
	if is.n += by; is.n == 0 {
		n.own.Delete(o.Prefix)
	} else {
		n.own.Insert(o.Prefix, is)
	}
	if changed = !known || is.n == 0; changed {
		n.ownRevision++
	}
	return changed
}

// Breaches calls visit with those of the addresses that no remote cluster can have: inside the own networks
// (RuleOwnNetwork), or for special use (RuleSpecialUse). Neither addrs nor visit may call the cache.
func (c *Cache) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, Breach)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := &c.core.networks
	for a := range addrs {
		var b Breach
		switch p := (place{pack(a), hostBits}); {
		case n.own.Size() > 0 && n.own.Contains(a.Unmap()):
			b = n.inOwn(p)
		case maybeSpecial(p):
			b = special(p.prefix())
		}
		if b.broken() {
			visit(a, b)
		}
	}
}

// IsOwn reports whether an address is in a network of the own cluster, or the winning claim on it is one of the own
// cluster, such as a node's. A claim of a remote cluster does not make an address own.
func (c *Cache) IsOwn(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.core.networks.own.Size() > 0 && c.core.networks.own.Contains(a) {
		return true
	}
	winner := c.core.routes.longest(a)
	return winner != nil && !winner.remote()
}

// OwnRevision grows with every change of the own networks.
func (c *Cache) OwnRevision() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.networks.ownRevision
}

// Enforces reports whether claims that break a rule do not count ([Rules.Enforce]).
func (c *Cache) Enforces() bool { return c.core.networks.enforce }
