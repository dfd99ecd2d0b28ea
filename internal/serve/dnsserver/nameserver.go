package dnsserver

import (
	"net/netip"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/nodes"
)

// apex adds the records that each zone has at its apex.
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

// nameServer returns the DNS name of the agent itself. Each zone of services has its own. The other zones use the name
// of the first zone of services: below them are only clusters and addresses.
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

// serverAddresses returns the addresses at which clients reach the agent: the address that it listens on or, if it
// listens on all, the known addresses of its node.
func (a *answer) serverAddresses() []netip.Addr {
	if a.server.IsValid() {
		return []netip.Addr{a.server}
	}
	if node, _, found := a.view.Nodes.Table().Get(a.txn, nodes.ByName(a.own, a.asker.Node)); found {
		return addressesOf(node)
	}
	return nil
}
