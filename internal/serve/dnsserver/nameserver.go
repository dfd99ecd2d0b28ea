package dnsserver

import (
	"net/netip"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/nodes"
)

// apex has what each zone has.
func (a *answer) apex() {
	switch a.kind {
	case dns.TypeSOA:
		a.records = append(a.records, a.soa(a.ttl))
	case dns.TypeNS:
		a.records = append(a.records, &dns.NS{Hdr: a.header(a.name, dns.TypeNS, a.ttl), Ns: a.nameServer()})
		for _, ip := range a.serverAddresses() {
			a.extra = append(a.extra, a.address(a.nameServer(), ip))
		}
	}
}

// nameServer is the name of the agent itself. A zone of services has one for it, and the others have that of the first
// such zone: below them are clusters and addresses alone.
func (a *answer) nameServer() string {
	if a.zone.services {
		return "ns.dns." + a.zone.name
	}
	for i := range a.zones {
		if a.zones[i].services {
			return "ns.dns." + a.zones[i].name
		}
	}
	return a.zone.name // there is always one
}

// serverAddresses are those at which the agent is asked: where it listens or, where that is any address, those of its node
// as far as they are known.
func (a *answer) serverAddresses() []netip.Addr {
	if a.server.IsValid() {
		return []netip.Addr{a.server}
	}
	if node, _, found := a.view.Nodes.Table().Get(a.txn, nodes.ByName(a.own, a.asker.Node)); found {
		return addressesOf(node)
	}
	return nil
}
