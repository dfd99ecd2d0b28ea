package ipcache

import (
	"iter"
	"net/netip"
)

// Breaches calls visit with those of the addresses that no remote cluster can have:
// inside the own networks (RuleOwnNetwork), or for special use (RuleSpecialUse).
// Neither addrs nor visit may call the cache.
func (c *Cache) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, Breach)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t := &c.core.territory
	for a := range addrs {
		var b Breach
		switch p := (place{pack(a), hostBits}); {
		case t.own.Size() > 0 && t.own.Contains(a.Unmap()):
			b = t.inOwn(p)
		case maybeSpecial(p):
			b = special(p.prefix())
		}
		if b.broken() {
			visit(a, b)
		}
	}
}

// OwnRevision grows with every change of the own networks.
func (c *Cache) OwnRevision() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.territory.ownRevision
}

// Enforces tells whether what breaks a rule does not count ([Rules.Enforce]).
func (c *Cache) Enforces() bool { return c.core.territory.enforce }
