package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// backend is one address of a service.
type backend struct {
	IP             netip.Addr
	Ports          []string
	Hostname, Zone string
}

func backends(s *wire.Service) []backend {
	var out []backend
	for text, ports := range s.Backends {
		b := backend{IP: netip.MustParseAddr(text), Hostname: s.Hostnames[text], Zone: s.Zones[text].Zone}
		for name, l4 := range ports {
			b.Ports = append(b.Ports, fmt.Sprintf("%s %s %d", name, l4.Protocol, l4.Port))
		}
		slices.Sort(b.Ports)
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b backend) int { return a.IP.Compare(b.IP) })
	return out
}

func serviceText(s *wire.Service) string {
	return exportedText(s.Shared, s.ClusterID, s.Labels, backends(s))
}

func exportedText(shared bool, id uint32, labels map[string]string, b []backend) string {
	return fmt.Sprintf("shared %t id %d labels %v backends %s", shared, id, labels, mustText(b))
}

func mustText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// endpoint is one address of a slice, or of a service whose slices add details.
type endpoint struct {
	IP                          netip.Addr
	Zone, Node                  string
	Ready, Serving, Terminating bool
}

func endpoints(s *wire.EndpointSlice) []endpoint {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	var out []endpoint
	for _, e := range s.Endpoints {
		c := e.Conditions
		ready := c.Ready == nil || *c.Ready
		out = append(out, endpoint{
			netip.MustParseAddr(e.Addresses[0]), text(e.Zone), text(e.NodeName),
			ready, c.Serving == nil && ready || c.Serving != nil && *c.Serving, c.Terminating != nil && *c.Terminating,
		})
	}
	return out
}

func slicedText(all []endpoint) string {
	slices.SortFunc(all, func(a, b endpoint) int { return a.IP.Compare(b.IP) })
	return fmt.Sprint(all)
}

// part is the part of one cluster in a service.
type part struct {
	entry  *wire.Service // nil when the cluster exports slices only
	sliced []endpoint
}

func (p part) shared() bool { return p.entry == nil || p.entry.Shared }

// backends are those of the entry, with the details of the slices, or without an entry the usable ones of the slices.
func (p part) backends() []endpoint {
	var out []endpoint
	if p.entry == nil {
		for _, e := range p.sliced {
			if e.Ready || e.Serving {
				out = append(out, e)
			}
		}
		return out
	}
	for _, b := range backends(p.entry) {
		e := endpoint{b.IP, b.Zone, "", true, true, false}
		for _, more := range p.sliced {
			if more.IP == b.IP {
				e = more
				e.Zone = cmp.Or(b.Zone, more.Zone)
			}
		}
		out = append(out, e)
	}
	return out
}

// globalText is the global service of the clusters' parts: empty unless one shares it, else the backends of those that
// do, each address once for a cluster.
func globalText(of map[string]*part) string {
	var what []string
	shared := false
	for cluster, p := range of {
		if shared = shared || p.shared(); p.shared() {
			for _, e := range p.backends() {
				what = append(what, fmt.Sprint(cluster, " ", e))
			}
		}
	}
	if !shared {
		return ""
	}
	slices.Sort(what)
	return fmt.Sprintf("of %v backends %v", slices.Sorted(maps.Keys(of)), what)
}
