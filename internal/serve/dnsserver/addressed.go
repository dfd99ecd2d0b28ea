package dnsserver

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// A service with addresses of its own for the mesh (ClusterSetIP, KEP-1645 2.3) answers with these,
// whether or not it has backends now. Its backends have no names.

// findAddressed finds a name below such a service: labels are what is to the left of its own.
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

// portsOf gives an SRV record for each port of the service that matches (2.3.2), with the addresses
// of the service, which is the target. Without addresses the name only exists.
func (s serviceName) portsOf(addresses []netip.Addr, matches func(services.Port) bool) {
	var records []dns.RR
	last := uint16(0) // they are by number; several protocols may have one, and a record is there once
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

// isNamed reports whether a port has a name in the import, too, and so a record (2.3.2): without one among
// several it has a name in the derived Service alone.
func isNamed(p services.Port) bool {
	return p.Name != "" && p.Name != mcs.UnnamedPort(p.Protocol, int(p.Port))
}
