package services

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FromWire converts a decoded service. An address that is written in two ways becomes one backend with the ports of
// both. The labels are shared with w.
func FromWire(w *wire.Service, source wire.Source) *Service {
	s := &Service{
		Cluster: w.Cluster, ClusterID: w.ClusterID, Source: source, Shared: w.Shared, IncludeExternal: w.IncludeExternal,
		Namespace: w.Namespace, Name: w.Name,
	}
	var seen pool
	s.Ports, s.Backends = seen.frontends(w), seen.backends(w)
	if s.Local() {
		s.Addresses = addresses(w)
	}
	if len(w.Labels) > 0 {
		s.Labels = w.Labels
	}
	return s
}

// frontends returns the ports of a service, which are nearly always the same for all its addresses.
func (p *pool) frontends(w *wire.Service) []Port {
	var first, others []Port
	for _, ports := range w.Frontends {
		if one := p.ports(ports); first == nil {
			first = one
		} else if !slices.Equal(first, one) {
			others = append(others, one...)
		}
	}
	if len(others) == 0 {
		return first
	}
	return slices.Clip(slices.Compact(sortPorts(append(others, first...))))
}

// addresses returns the addresses of the service itself.
func addresses(w *wire.Service) []netip.Addr {
	if len(w.Frontends) == 0 {
		return nil
	}
	all := make([]netip.Addr, 0, len(w.Frontends))
	for text := range w.Frontends {
		if ip, err := netip.ParseAddr(text); err == nil { // the decoder refuses invalid ones
			all = append(all, ip.Unmap())
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

func (p *pool) backends(w *wire.Service) []Backend {
	if len(w.Backends) == 0 {
		return nil
	}
	texts := slices.AppendSeq(make([]string, 0, len(w.Backends)), maps.Keys(w.Backends))
	slices.Sort(texts) // the order of two spellings must not depend on chance
	out := make([]Backend, 0, len(texts))
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // the decoder refuses these
		}
		out = append(out, Backend{
			IP:       ip.Unmap(),
			Ports:    p.ports(w.Backends[text]),
			Hostname: w.Hostnames[text],
			Zone:     p.zone(w.Zones[text].Zone),
		})
	}
	return slices.Clip(foldBackends(byAddress(out)))
}

// byAddress sorts in place; backends with the same address keep their order.
func byAddress(backends []Backend) []Backend {
	slices.SortStableFunc(backends, func(a, b Backend) int { return a.IP.Compare(b.IP) })
	return backends
}

// pool shares data among the backends of one service: nearly always they all have the same ports and few zones.
type pool struct {
	scratch []Port
	lists   [][]Port
	zones   []string
}

// poolSize is how many lists and zones a pool keeps for comparison; more are not shared.
const poolSize = 8

func (p *pool) ports(from wire.Ports) []Port {
	p.scratch = p.scratch[:0]
	for name, l4 := range from {
		if l4 != nil { // null on the wire
			p.scratch = append(p.scratch, Port{Name: name, Protocol: protocol(l4.Protocol), Port: l4.Port})
		}
	}
	if len(p.scratch) == 0 {
		return nil
	}
	return p.list(sortPorts(p.scratch))
}

// list returns a list with these ports. It does not keep the given slice.
func (p *pool) list(sorted []Port) []Port {
	for _, known := range p.lists {
		if slices.Equal(known, sorted) {
			return known
		}
	}
	fresh := slices.Clone(sorted)
	if len(p.lists) < poolSize {
		p.lists = append(p.lists, fresh)
	}
	return fresh
}

func (p *pool) zone(z string) string {
	if i := slices.Index(p.zones, z); i >= 0 {
		return p.zones[i]
	}
	if len(p.zones) < poolSize && z != "" {
		p.zones = append(p.zones, z)
	}
	return z
}

// protocol returns the constant for a known protocol.
func protocol(p string) string {
	switch p {
	case "TCP":
		return "TCP"
	case "UDP":
		return "UDP"
	case "SCTP":
		return "SCTP"
	}
	return p
}

func sortPorts(ports []Port) []Port {
	slices.SortFunc(ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.Name, b.Name))
	})
	return ports
}
