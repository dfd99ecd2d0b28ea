package services

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FromWire converts a decoded service. Addresses that are written in two ways
// become one backend with the ports of both. The labels are shared with w.
func FromWire(w *wire.Service, source wire.Source) *Service {
	s := &Service{
		Cluster: w.Cluster, ClusterID: w.ClusterID, Source: source, Shared: w.Shared, IncludeExternal: w.IncludeExternal,
		Namespace: w.Namespace, Name: w.Name, Backends: backends(w),
	}
	if len(w.Labels) > 0 {
		s.Labels = w.Labels
	}
	return s
}

func backends(w *wire.Service) []Backend {
	if len(w.Backends) == 0 {
		return nil
	}
	texts := slices.AppendSeq(make([]string, 0, len(w.Backends)), maps.Keys(w.Backends))
	slices.Sort(texts) // which of two spellings comes first must not depend on chance
	out := make([]Backend, 0, len(texts))
	var seen pool
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // the decoder refuses these
		}
		out = append(out, Backend{
			IP:       ip.Unmap(),
			Ports:    seen.ports(w.Backends[text]),
			Hostname: w.Hostnames[text],
			Zone:     seen.zone(w.Zones[text].Zone),
		})
	}
	return slices.Clip(foldBackends(byAddress(out)))
}

// byAddress sorts in place; those of one address keep their order.
func byAddress(backends []Backend) []Backend {
	slices.SortStableFunc(backends, func(a, b Backend) int { return a.IP.Compare(b.IP) })
	return backends
}

// pool holds what the backends of one service have in common: nearly always
// they all have the same ports and few zones.
type pool struct {
	scratch []Port
	lists   [][]Port
	zones   []string
}

// poolSize bounds how much a pool compares; beyond it nothing is shared.
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

// list returns a list with these ports, which it does not keep.
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
