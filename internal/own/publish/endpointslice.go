package publish

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EndpointSlice is what the cluster publishes of a slice: everything but the objects of its
// endpoints, those that are not ready included (spec wire.md §1.4); nil for a slice of
// names. What is no address is left out, since a reader would refuse the whole slice for
// it. Maps and pointers are shared with the slice.
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

// copied is a text of its own: one that is no host name or zone is emptied in what is shown ([wire.EndpointSlice.CheckNames]).
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
