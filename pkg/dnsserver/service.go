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
func (s serviceName) find(labels []string, c backends.Choice) {
	var left, right string
	switch len(labels) {
	case 0:
		if now := s.part(s.now(c)); len(now) > 0 { // no backend, no name (KEP-1645 2.4.1)
			s.exists = true
			s.addresses(now)
			s.targets(now, "", "")
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
		s.port(strings.TrimPrefix(left, "_"), strings.TrimPrefix(right, "_"), left != "" && !strings.HasPrefix(left, "_"), c)
		return
	}
	if s.cluster == "" {
		s.ofCluster(left, right, c)
	} else if left == "" {
		s.host(right, s.cluster)
	}
}

// now are the backends that connections go to; of one cluster, those that it has in any group.
func (s serviceName) now(c backends.Choice) []backends.Backend {
	if s.cluster == "" {
		return c.Now()
	}
	var all []backends.Backend
	for _, g := range c.Groups {
		for _, b := range g.Backends {
			if b.Cluster == s.cluster {
				all = append(all, b)
			}
		}
	}
	return all
}

// part bounds the backends. It is the same part whatever is asked for, so that the records of a
// service agree with each other.
func (s serviceName) part(all []backends.Backend) []backends.Backend {
	if len(all) <= s.most {
		return all
	}
	from := int(s.offset % uint32(len(all))) //nolint:gosec // no service has that many
	some := make([]backends.Backend, 0, s.most)
	for i := range s.most {
		some = append(some, all[(from+i)%len(all)])
	}
	return some
}

// addresses gives those of the backends that are of the family that is asked for, in turns.
func (s serviceName) addresses(all []backends.Backend) {
	if len(all) == 0 {
		return
	}
	s.exists = true
	if s.kind != dns.TypeA && s.kind != dns.TypeAAAA {
		return
	}
	first := rand.IntN(len(all))
	for i := range all {
		if rr := s.address(s.name, all[(first+i)%len(all)].IP); rr != nil && rr.Header().Rrtype == s.kind {
			s.records = append(s.records, rr)
		}
	}
}

func (a *answer) address(name string, ip netip.Addr) dns.RR {
	if ip.Is4() {
		return &dns.A{Hdr: a.header(name, dns.TypeA, a.ttl), A: ip.AsSlice()}
	}
	return &dns.AAAA{Hdr: a.header(name, dns.TypeAAAA, a.ttl), AAAA: ip.AsSlice()}
}

// targets gives an SRV record for each backend and each of its ports, or for those of a name and a
// protocol. The targets' addresses come with them.
func (s serviceName) targets(all []backends.Backend, port, protocol string) {
	if s.kind != dns.TypeSRV || len(all) == 0 {
		return
	}
	type target struct {
		name string
		port uint16
	}
	seen := make(map[target]bool)
	for i := range all {
		b := &all[i]
		name := s.nameOf(b)
		if len(name) > maxName {
			continue
		}
		before := len(s.records)
		for _, p := range b.Ports {
			if port != "" && (p.Name != port || !strings.EqualFold(p.Protocol, protocol)) || seen[target{name, p.Port}] {
				continue
			}
			seen[target{name, p.Port}] = true
			s.records = append(s.records, &dns.SRV{Hdr: s.header(s.name, dns.TypeSRV, s.ttl), Port: p.Port, Target: name})
		}
		if len(s.records) > before {
			s.extra = append(s.extra, s.address(name, b.IP))
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

// nameOf is the name of a backend.
func (s serviceName) nameOf(b *backends.Backend) string {
	if s.cluster != "" {
		return hostOf(b.Hostname, b.IP) + "." + s.base
	}
	return hostOf(b.Hostname, b.IP) + "." + b.Cluster + "." + s.base
}

// port finds the backends of a port of this name, those that connections to it go to: not the same as
// those of the service where the best ones lack the port. Without a name it finds whether the protocol
// has a port at all.
func (s serviceName) port(name, protocol string, malformed bool, c backends.Choice) {
	switch {
	case malformed:
	case name == "":
		s.exists = s.speaks(protocol, c)
	default:
		now := s.part(s.now(backends.Choose(s.service, backends.NamedPort(name, strings.ToUpper(protocol)), s.asker)))
		s.exists = len(now) > 0
		s.targets(now, name, protocol)
	}
}

// speaks tells whether a backend has a named port of a protocol.
func (s serviceName) speaks(protocol string, c backends.Choice) bool {
	for _, g := range c.Groups {
		for _, b := range slices.Concat(g.Backends, g.Draining) {
			if s.cluster != "" && b.Cluster != s.cluster {
				continue
			}
			if slices.ContainsFunc(b.Ports, func(p services.Port) bool { return p.Name != "" && strings.EqualFold(p.Protocol, protocol) }) {
				return true
			}
		}
	}
	return false
}

// ofCluster finds a host of a cluster. Without a host the name is reserved (KEP-1645 2.4.4): it owns
// nothing, and yet exists when there are names below it (RFC 8020).
func (s serviceName) ofCluster(host, cluster string, c backends.Choice) {
	if host != "" {
		s.host(host, cluster)
		return
	}
	s.cluster = cluster
	s.exists = len(s.now(c)) > 0
}

// host finds the backends of a cluster that have a host name and take connections to any of their
// ports, whatever is chosen among them.
func (s serviceName) host(host, cluster string) {
	var all []backends.Backend
	for part, b := range backends.Usable(s.service) {
		if part.Cluster == cluster && hostOf(b.Hostname, b.IP) == host && (!b.Terminating() || s.isLast(cluster, &b)) {
			all = append(all, backends.Backend{IP: b.IP})
		}
	}
	s.addresses(s.part(all))
}

// isLast tells whether a backend that terminates takes connections to any of its ports all the same:
// whether all that have the port terminate.
func (s serviceName) isLast(cluster string, b *services.Backend) bool {
	ports := []backends.Port{{}}
	for _, p := range b.Ports {
		ports = append(ports, backends.NamedPort(p.Name, p.Protocol))
	}
	for _, port := range ports {
		for _, g := range backends.Choose(s.service, port, s.asker).Groups {
			if slices.ContainsFunc(g.Backends, func(o backends.Backend) bool { return o.IP == b.IP && o.Cluster == cluster }) {
				return true
			}
		}
	}
	return false
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

// isLabel tells whether a text is one label of a name in lower case.
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
