package codec

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// excuse is a reason for which we may refuse a spoilt entry that Cilium reads.
type excuse struct {
	kind   model.Kind // empty is all
	before string     // releases before this one; empty is all
	ours   string     // part of our error; there is no case in which only they refuse it
	reason string
}

func excuses() []excuse {
	const (
		behind       = "Cilium tests this behind the store, where the peer's codec ends"
		unknownField = "the release does not know the field"
	)
	return []excuse{
		{ours: "its parts are so small and many", reason: "Cilium takes whatever memory an entry takes; here it is at most 16 times the entry's size"},
		{ours: "name: the ", reason: "Cilium reads names that no object of Kubernetes can have, and so nobody publishes"},
		{kind: model.Addresses, ours: "range: ", reason: behind + ": in the watcher of addresses"},
		{kind: model.Identities, ours: "range: ", reason: behind + ": in the allocator"},
		{kind: model.Identities, ours: "labels: ", reason: behind + ": in the allocator"},
		{kind: model.Identities, ours: "missing: ", reason: behind + ": in the allocator"},
		{
			kind: model.EndpointSlices, ours: "map entry of field",
			reason: "inside an entry of a map Cilium's generated code looks neither at the types of fields nor at the entry's end",
		},
		{
			kind: model.EndpointSlices, ours: "variable length integer overflow",
			reason: "Cilium's generated code drops the bits of a number beyond the 64th",
		},
		{kind: model.ClusterConfigs, before: "1.17", ours: "serviceExportsEnabled", reason: unknownField},
		{kind: model.ClusterConfigs, before: "1.20", ours: "ndpointSlicesExportMode", reason: unknownField},
		{kind: model.Services, before: "1.19", ours: ".zones", reason: unknownField},
		{
			kind: model.Services, before: "1.19", ours: "ParseAddr(",
			reason: unknownField + ", and the test's model has no zones but those of addresses",
		},
		{kind: model.Addresses, before: "1.19", ours: "K8sServiceAccount", reason: unknownField},
		{kind: model.ServiceExports, before: "1.18", ours: "abels of type", reason: unknownField},
		{kind: model.ServiceExports, before: "1.18", ours: "nnotations of type", reason: unknownField},
		{kind: model.ServiceExports, before: "1.19", ours: ".ipFamilies", reason: unknownField},
		{kind: model.ServiceExports, before: "1.19", ours: "internalTrafficPolicy", reason: unknownField},
		{kind: model.ServiceExports, before: "1.19", ours: "internal traffic policy", reason: unknownField},
		{kind: model.ServiceExports, before: "1.19", ours: "trafficDistribution", reason: unknownField},
		{kind: model.ServiceExports, before: "1.19", ours: "traffic distribution", reason: unknownField},
	}
}

// excused reports whether we may refuse the entry alone, with this error.
func (s subject) excused(kind model.Kind, ours string) bool {
	for _, e := range excuses() {
		if (e.kind == "" || e.kind == kind) && (e.before == "" || interop.Older(s.p.Release, e.before)) && strings.Contains(ours, e.ours) {
			return true
		}
	}
	return false
}

func usableZone(zone string) string {
	if len(validation.IsValidLabelValue(zone)) > 0 {
		return ""
	}
	return zone
}

func usableHost(host string) string {
	if len(validation.IsDNS1123Label(host)) > 0 {
		return ""
	}
	return host
}

func leaveOutZones(zones []model.ForZone) {
	for i := range zones {
		zones[i].Name = usableZone(zones[i].Name)
	}
}

// leaveOut removes from the objects of both sides the parts that they may read differently.
func (s subject) leaveOut(all ...*model.Objects) {
	for _, o := range all {
		// Behind the store, Cilium's watcher of addresses makes a map of the named ports that it can use, and logs the
		// others.
		each(addresses, func(a *model.Address) { a.NamedPorts = nil })(o)
		// We ignore a zone that no node label can have, and a host name that no pod can have.
		each(services, func(s *model.Service) {
			maps.DeleteFunc(s.Hostnames, func(_ netip.Addr, host string) bool { return usableHost(host) == "" })
			for address, z := range s.Zones {
				z.Zone = usableZone(z.Zone)
				leaveOutZones(z.ForZones)
				s.Zones[address] = z
			}
		})(o)
		each(endpointSlices, func(s *model.EndpointSlice) {
			for _, e := range s.Endpoints {
				if e.Zone != nil {
					*e.Zone = usableZone(*e.Zone)
				}
				if e.Hostname != nil {
					*e.Hostname = usableHost(*e.Hostname)
				}
				if e.Hints != nil {
					leaveOutZones(e.Hints.ForZones)
				}
			}
		})(o)
		// 1.18 reads both spellings of labels and annotations into the same map. No writer writes different ones.
		if interop.Older(s.p.Release, "1.19") {
			each(exports, func(e *model.ServiceExport) { e.Labels, e.Annotations = nil, nil })(o)
		}
	}
	// If a list of further pod CIDRs occurs twice, and the second one has a null, Cilium loses the CIDR at that place
	// of the first one, and we keep it. No writer writes a list twice, or a null.
	void := func(o *model.Objects) bool {
		return slices.ContainsFunc(o.Nodes, func(n model.Node) bool {
			return slices.Contains(n.IPv4SecondaryAllocCIDRs, netip.Prefix{}) || slices.Contains(n.IPv6SecondaryAllocCIDRs, netip.Prefix{})
		})
	}
	if slices.ContainsFunc(all, void) {
		for _, o := range all {
			each(nodes, func(n *model.Node) { n.IPv4SecondaryAllocCIDRs, n.IPv6SecondaryAllocCIDRs = nil, nil })(o)
		}
	}
}
