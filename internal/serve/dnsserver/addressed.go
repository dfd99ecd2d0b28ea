package dnsserver

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// A service with addresses of its own for the mesh (ClusterSetIP, KEP-1645 2.3) answers with these addresses, with or
// without backends. Its backends have no names.

// findAddressed finds a name below a service with addresses; labels are the labels to the left of the name of the
// service.
func (s serviceName) findAddressed(labels []string, addresses []netip.Addr) {
	s.ownPartOnly = true
	switch {
	case len(labels) == 0:
		s.exists = true
		s.all(addresses)
		s.portsOf(addresses, func(services.Port) bool { return true })
	case len(labels) == 1 && !strings.HasPrefix(labels[0], "_"): // reserved (2.3.4)
		s.ownPartOnly = false
		s.exists = s.service.Part(labels[0]) != nil
	case len(labels) == 1:
		protocol := labels[0][1:]
		s.portsOf(nil, func(p services.Port) bool { return isNamed(p) && strings.EqualFold(p.Protocol, protocol) })
	case len(labels) == 2 && strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_"):
		name, protocol := labels[0][1:], labels[1][1:]
		s.portsOf(addresses, func(p services.Port) bool {
			return isNamed(p) && p.Name == name && strings.EqualFold(p.Protocol, protocol)
		})
	}
}

// portsOf adds an SRV record for each port of the service that matches (2.3.2). The target is the service, and its
// addresses are added, too. Without addresses, the name exists, but has no records.
func (s serviceName) portsOf(addresses []netip.Addr, matches func(services.Port) bool) {
	var records []dns.RR
	last := uint16(0) // ports are sorted by number; several protocols may share a number, and get one record
	for _, p := range s.service.Local().Ports {
		if !matches(p) {
			continue
		}
		s.exists = true
		if len(records) < mostRecords && p.Port != last {
			records = append(records, &dns.SRV{Hdr: s.header(s.name, dns.TypeSRV, s.ttl), Port: p.Port, Target: s.base})
		}
		last = p.Port
	}
	if s.kind != dns.TypeSRV || len(addresses) == 0 || len(records) == 0 {
		return
	}
	weigh(records)
	s.records = records
	for _, ip := range addresses {
		s.extra = append(s.extra, s.address(s.base, ip))
	}
}

// isNamed reports whether a port has a name in the import, and so an SRV record (2.3.2). If one of several ports has
// no name in the import, it has one only in the derived Service.
func isNamed(p services.Port) bool {
	return p.Name != "" && p.Name != mcs.UnnamedPort(p.Protocol, int(p.Port))
}
