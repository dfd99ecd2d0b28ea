package dnsserver

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// serviceName is a service whose name, or one below it, is asked for.
type serviceName struct {
	*answer
	base    string // its name, in lower case
	cluster string // whose backends alone are meant; empty for those of all
}

// find finds a name below the service: labels are what is to the left of its own.
func (s serviceName) find(labels []string) {
	var left, right string
	switch len(labels) {
	case 0:
		if p := s.part(s.service, s.cluster, backends.Port{}, "", ""); p.exists { // no backend, no name (KEP-1645 2.4.1)
			s.exists = true
			s.addresses(p)
			s.targets(p)
		}
		return
	case 1:
		right = labels[0]
	case 2:
		left, right = labels[0], labels[1]
	default:
		return
	}
	if strings.HasPrefix(right, "_") {
		s.port(strings.TrimPrefix(left, "_"), strings.TrimPrefix(right, "_"), left != "" && !strings.HasPrefix(left, "_"))
		return
	}
	if s.cluster == "" {
		s.ofCluster(left, right)
	} else if left == "" {
		s.host(right, s.cluster)
	}
}

// addresses gives those of the family that is asked for.
func (s serviceName) addresses(p *part) {
	if s.kind == dns.TypeA || s.kind == dns.TypeAAAA {
		s.all(p.of(s.kind).addresses())
	}
}

// all gives those of the addresses that are of the family that is asked for, in turns, and a bounded number of them.
func (a *answer) all(addresses []netip.Addr) {
	if len(addresses) == 0 {
		return
	}
	a.exists = true
	first := rand.IntN(len(addresses))
	for i := range addresses {
		rr := a.address(a.name, addresses[(first+i)%len(addresses)])
		if rr.Header().Rrtype == a.kind {
			if a.records = append(a.records, rr); len(a.records) == a.most {
				return
			}
		}
	}
}

func (a *answer) address(name string, ip netip.Addr) dns.RR {
	if ip.Is4() {
		return &dns.A{Hdr: a.header(name, dns.TypeA, a.ttl), A: ip.AsSlice()}
	}
	return &dns.AAAA{Hdr: a.header(name, dns.TypeAAAA, a.ttl), AAAA: ip.AsSlice()}
}

// targets gives an SRV record for each backend and each of its ports. The targets' addresses come with them.
func (s serviceName) targets(p *part) {
	if s.kind != dns.TypeSRV {
		return
	}
	type target struct {
		name string
		port uint16
	}
	seen := make(map[target]bool, len(p.targets))
	for i := range p.targets {
		t := &p.targets[i]
		name := t.name + "." + s.base
		if len(name) > maxName {
			continue
		}
		before := len(s.records)
		for _, port := range t.ports {
			if one := (target{name, port}); !seen[one] {
				seen[one] = true
				s.records = append(s.records, &dns.SRV{Hdr: s.header(s.name, dns.TypeSRV, s.ttl), Port: port, Target: name})
			}
		}
		if len(s.records) > before {
			s.extra = append(s.extra, s.address(name, t.ip))
		}
	}
	weigh(s.records)
	rand.Shuffle(len(s.records), func(i, j int) { s.records[i], s.records[j] = s.records[j], s.records[i] })
}

// weigh gives each of the targets the same weight, as CoreDNS does (mcs.md A).
func weigh(targets []dns.RR) {
	weight := uint16(max(1, 100/max(1, len(targets)))) //nolint:gosec // at the most 100
	for _, rr := range targets {
		rr.(*dns.SRV).Weight = weight
	}
}

// maxName is the longest name of DNS, with its final dot.
const maxName = 254

// port finds the backends of a port of this name, those that connections to it go to: not the same as
// those of the service where the best ones lack the port. Without a name it finds whether the protocol
// has a port at all.
func (s serviceName) port(name, protocol string, malformed bool) {
	if malformed {
		return
	}
	protocol = strings.ToUpper(protocol)
	ports := s.ports(s.service, s.cluster)
	if name == "" {
		s.exists = ports.has(ports.protocol(protocol))
		return
	}
	if !ports.has(ports.port(name, protocol)) {
		return
	}
	if p := s.part(s.service, s.cluster, backends.NamedPort(name, protocol), name, protocol); p.exists {
		s.exists = true
		s.targets(p)
	}
}

// ofCluster finds a host of a cluster. Without a host the name is reserved (KEP-1645 2.4.4): it owns
// nothing, and yet exists when there are names below it (RFC 8020).
func (s serviceName) ofCluster(host, cluster string) {
	switch {
	case s.service.Part(cluster) == nil:
	case host != "":
		s.host(host, cluster)
	default:
		s.exists = s.part(s.service, cluster, backends.Port{}, "", "").exists
	}
}

// host finds the backends of a cluster that have a host name and take connections to any of their
// ports, whatever is chosen among them.
func (s serviceName) host(host, cluster string) {
	part := s.service.Part(cluster)
	if part == nil {
		return
	}
	var all []netip.Addr
	for b := range s.hosts(s.service, part).of(part, host) {
		if !b.Terminating() || s.isLast(b) {
			all = append(all, b.IP)
		}
	}
	s.all(all)
}

// isLast reports whether a backend that terminates takes connections to any of its ports all the same:
// whether all that have the port terminate.
func (s serviceName) isLast(b *services.Backend) bool {
	ports := s.ports(s.service, "")
	return !ports.stay(ports.any()) ||
		slices.ContainsFunc(b.Ports, func(o services.Port) bool { return !ports.stay(ports.port(o.Name, o.Protocol)) })
}

// hostOf is the host name of a backend, or its address with dashes where it has none that DNS can
// have.
func hostOf(hostname string, ip netip.Addr) string {
	if isLabel(hostname) {
		return hostname
	}
	return dashed(ip)
}

func dashed(ip netip.Addr) string {
	text := strings.Map(func(r rune) rune {
		if r == '.' || r == ':' {
			return '-'
		}
		return r
	}, ip.String())
	if strings.HasSuffix(text, "-") {
		text += "0"
	}
	return text
}

// isLabel reports whether a text is one label of a name in lower case.
func isLabel(text string) bool {
	if text == "" || len(text) > 63 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// undashed is the address that dashed makes a label of; invalid for any other label.
func undashed(label string) netip.Addr {
	for _, separator := range []string{".", ":"} {
		ip, err := netip.ParseAddr(strings.ReplaceAll(label, "-", separator))
		if err != nil {
			ip, err = netip.ParseAddr(strings.ReplaceAll(strings.TrimSuffix(label, "0"), "-", separator))
		}
		if err == nil && dashed(ip) == label {
			return ip
		}
	}
	return netip.Addr{}
}
