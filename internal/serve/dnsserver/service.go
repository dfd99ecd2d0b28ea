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

// serviceName is a service in a question for its name, or for a name below it.
type serviceName struct {
	*answer
	base    string // the name of the service, in lower case
	cluster string // the cluster whose backends are used; empty: all clusters
}

// find finds a name below the service; labels are the labels to the left of the name of the service.
func (s serviceName) find(labels []string) {
	var left, right string
	switch len(labels) {
	case 0:
		if p := s.part(s.service, s.cluster, backends.Port{}, "", ""); p.exists { // without backends, the name does not exist (KEP-1645 2.4.1)
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

// addresses adds the addresses of a part, if the question is for addresses.
func (s serviceName) addresses(p *part) {
	if s.kind == dns.TypeA || s.kind == dns.TypeAAAA {
		s.all(p.of(s.kind).addresses())
	}
}

// all adds the addresses of the family of the question: a bounded number of them, starting with a random one.
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

// targets adds an SRV record for each backend and each of its ports, and the addresses of the targets.
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

// weigh gives each target the same weight, as CoreDNS does (mcs.md A).
func weigh(targets []dns.RR) {
	weight := uint16(max(1, 100/max(1, len(targets)))) //nolint:gosec // at the most 100
	for _, rr := range targets {
		rr.(*dns.SRV).Weight = weight
	}
}

// maxName is the maximum length of a DNS name, with its final dot.
const maxName = 254

// port finds the backends that connections to the port with this name go to. They may differ from those of the
// service, if the best backends of the service lack the port. Without a name, it only checks whether the protocol has
// a port.
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

// ofCluster finds a host of a cluster. Without a host, the name is reserved (KEP-1645 2.4.4): it has no records, but
// it exists when there are names below it (RFC 8020).
func (s serviceName) ofCluster(host, cluster string) {
	switch {
	case s.service.Part(cluster) == nil:
	case host != "":
		s.host(host, cluster)
	default:
		s.exists = s.part(s.service, cluster, backends.Port{}, "", "").exists
	}
}

// host finds the backends of a cluster that have this host name and take connections to any of their ports, also those
// that [backends.Choose] does not choose.
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

// isLast reports whether a backend that terminates still takes connections to one of its ports, because all backends
// that have this port terminate.
func (s serviceName) isLast(b *services.Backend) bool {
	ports := s.ports(s.service, "")
	return !ports.stay(ports.any()) ||
		slices.ContainsFunc(b.Ports, func(o services.Port) bool { return !ports.stay(ports.port(o.Name, o.Protocol)) })
}

// hostOf returns the host name of a backend. If that is not valid in DNS, it returns the address with dashes.
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

// isLabel reports whether a text is a valid DNS label in lower case.
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

// undashed returns the address for which dashed returns this label; invalid for any other label.
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
