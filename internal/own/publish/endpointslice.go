package publish

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EndpointSlice is what the cluster publishes of a slice: everything except the objects of its endpoints, and including
// endpoints that are not ready (spec wire.md §1.4); nil for a slice of names. Invalid addresses are left out, since a
// reader would refuse the whole slice because of them. Maps and pointers are shared with the slice.
func EndpointSlice(cluster wire.ClusterInfo, slice *discoveryv1.EndpointSlice) *wire.EndpointSlice {
	if !publishable(slice) {
		return nil
	}
	out := &wire.EndpointSlice{
		Cluster: cluster.Name, ClusterID: cluster.ID,
		Namespace: slice.Namespace, Name: slice.Name,
		Labels: slice.Labels, Annotations: slice.Annotations,
		AddressType: string(slice.AddressType),
	}
	for i := range slice.Endpoints {
		if e := endpoint(&slice.Endpoints[i], slice.AddressType); len(e.Addresses) > 0 {
			out.Endpoints = append(out.Endpoints, e)
		}
	}
	for _, p := range slice.Ports {
		out.Ports = append(out.Ports, wire.EndpointPort{
			Name: p.Name, Protocol: (*string)(p.Protocol), Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	return out
}

// publishable reports whether the slice is one of addresses.
func publishable(slice *discoveryv1.EndpointSlice) bool {
	return slice.AddressType == discoveryv1.AddressTypeIPv4 || slice.AddressType == discoveryv1.AddressTypeIPv6
}

// copied is a copy of a text, since [wire.EndpointSlice.CheckNames] empties an invalid host name or zone in place.
func copied(text *string) *string {
	if text == nil {
		return nil
	}
	return new(*text)
}

func endpoint(e *discoveryv1.Endpoint, family discoveryv1.AddressType) wire.Endpoint {
	out := wire.Endpoint{
		Conditions:         wire.EndpointConditions(e.Conditions),
		Hostname:           copied(e.Hostname),
		DeprecatedTopology: e.DeprecatedTopology,
		NodeName:           e.NodeName,
		Zone:               copied(e.Zone),
	}
	for _, text := range e.Addresses {
		ip, err := netip.ParseAddr(text)
		if err == nil && ip.Zone() == "" && ip.Is4() == (family == discoveryv1.AddressTypeIPv4) {
			out.Addresses = append(out.Addresses, text)
		}
	}
	if e.Hints != nil {
		out.Hints = &wire.EndpointHints{ForZones: forZones(e.Hints)}
	}
	return out
}
