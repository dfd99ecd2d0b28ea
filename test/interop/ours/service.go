package ours

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Service returns a service.
func Service(s model.Service) *wire.Service {
	return &wire.Service{
		Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name, ClusterID: s.ClusterID,
		Frontends: byText(s.Frontends, ports),
		Backends:  byText(s.Backends, ports),
		Hostnames: byText(s.Hostnames, func(name string) string { return name }),
		Zones: byText(s.Zones, func(z model.Zone) wire.Zone {
			return wire.Zone{Zone: z.Zone, ForZones: zones(z.ForZones)}
		}),
		Labels: s.Labels, Selector: s.Selector,
		IncludeExternal: s.IncludeExternal, Shared: s.Shared,
	}
}

func ports(p model.Ports) wire.Ports {
	all := wire.Ports{}
	for name, l4 := range p {
		all[name] = &wire.L4{Protocol: l4.Protocol, Port: l4.Port}
	}
	return all
}

func zones(names []string) []wire.ForZone {
	all := []wire.ForZone{}
	for _, name := range names {
		all = append(all, wire.ForZone{Name: name})
	}
	return all
}

// ModelService is the reverse of Service.
func ModelService(s *wire.Service) (model.Service, error) {
	service := model.Service{
		Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name, ClusterID: s.ClusterID,
		Labels: s.Labels, Selector: s.Selector,
		IncludeExternal: s.IncludeExternal, Shared: s.Shared,
	}
	var err error
	if service.Frontends, err = byAddress(s.Frontends, modelPorts); err != nil {
		return service, err
	}
	if service.Backends, err = byAddress(s.Backends, modelPorts); err != nil {
		return service, err
	}
	if service.Hostnames, err = byAddress(s.Hostnames, func(name string) string { return name }); err != nil {
		return service, err
	}
	service.Zones, err = byAddress(s.Zones, func(z wire.Zone) model.Zone {
		return model.Zone{Zone: z.Zone, ForZones: modelZones(z.ForZones)}
	})
	return service, err
}

func modelPorts(p wire.Ports) model.Ports {
	all := model.Ports{}
	for name, l4 := range p {
		if l4 == nil { // null
			l4 = &wire.L4{}
		}
		all[name] = model.L4{Protocol: l4.Protocol, Port: l4.Port}
	}
	return all
}

func modelZones(zones []wire.ForZone) []string {
	var names []string
	for _, z := range zones {
		names = append(names, z.Name)
	}
	return names
}

func byText[F, T any](from map[netip.Addr]F, translate func(F) T) map[string]T {
	to := map[string]T{}
	for addr, v := range from {
		to[addr.String()] = translate(v)
	}
	return to
}

func byAddress[F, T any](from map[string]F, translate func(F) T) (map[netip.Addr]T, error) {
	to := map[netip.Addr]T{}
	for _, text := range slices.Sorted(maps.Keys(from)) { // of two spellings of an address the last one
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		to[addr] = translate(from[text])
	}
	return to, nil
}

// EndpointSlice returns a slice.
func EndpointSlice(s model.EndpointSlice) *wire.EndpointSlice {
	slice := &wire.EndpointSlice{
		Cluster: s.Cluster, ClusterID: s.ClusterID, Namespace: s.Namespace, Name: s.Name,
		Labels: s.Labels, Annotations: s.Annotations, AddressType: s.AddressType,
	}
	for _, e := range s.Endpoints {
		endpoint := wire.Endpoint{
			Addresses:  e.Addresses,
			Conditions: wire.EndpointConditions{Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating},
			Hostname:   e.Hostname, NodeName: e.NodeName, Zone: e.Zone, DeprecatedTopology: e.Topology,
		}
		if e.Hints != nil {
			endpoint.Hints = &wire.EndpointHints{ForZones: zones(e.Hints.ForZones)}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	for _, p := range s.Ports {
		slice.Ports = append(slice.Ports, wire.EndpointPort{
			Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	return slice
}

// ModelEndpointSlice is the reverse of EndpointSlice.
func ModelEndpointSlice(s *wire.EndpointSlice) model.EndpointSlice {
	slice := model.EndpointSlice{
		Cluster: s.Cluster, ClusterID: s.ClusterID, Namespace: s.Namespace, Name: s.Name,
		Labels: s.Labels, Annotations: s.Annotations, AddressType: s.AddressType,
	}
	for _, e := range s.Endpoints {
		endpoint := model.Endpoint{
			Addresses: e.Addresses,
			Ready:     e.Conditions.Ready, Serving: e.Conditions.Serving, Terminating: e.Conditions.Terminating,
			Hostname: e.Hostname, NodeName: e.NodeName, Zone: e.Zone, Topology: e.DeprecatedTopology,
		}
		if e.Hints != nil {
			endpoint.Hints = &model.Hints{ForZones: modelZones(e.Hints.ForZones)}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	for _, p := range s.Ports {
		slice.Ports = append(slice.Ports, model.EndpointPort{
			Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	return slice
}

// ServiceExport returns an exported service.
func ServiceExport(e model.ServiceExport) *wire.ServiceExport {
	export := &wire.ServiceExport{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name,
		Labels: e.Labels, Annotations: e.Annotations,
		ExportCreationTimestamp: wire.ExportTime{Time: e.Created},
		Type:                    e.Type,
		SessionAffinity:         e.SessionAffinity,
		IPFamilies:              e.IPFamilies,
		InternalTrafficPolicy:   e.InternalTrafficPolicy,
		TrafficDistribution:     e.TrafficDistribution,
	}
	if e.AffinityTimeout != nil {
		export.SessionAffinityConfig = &wire.SessionAffinityConfig{
			ClientIP: &wire.ClientIPConfig{TimeoutSeconds: e.AffinityTimeout},
		}
	}
	for _, p := range e.Ports {
		export.Ports = append(export.Ports, wire.ServiceExportPort(p))
	}
	return export
}

// ModelServiceExport is the reverse of ServiceExport.
func ModelServiceExport(e *wire.ServiceExport) model.ServiceExport {
	export := model.ServiceExport{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name,
		Labels: e.Labels, Annotations: e.Annotations,
		Created:               e.ExportCreationTimestamp.UTC(),
		Type:                  e.Type,
		SessionAffinity:       e.SessionAffinity,
		IPFamilies:            e.IPFamilies,
		InternalTrafficPolicy: e.InternalTrafficPolicy,
		TrafficDistribution:   e.TrafficDistribution,
	}
	if c := e.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		export.AffinityTimeout = c.ClientIP.TimeoutSeconds
	}
	for _, p := range e.Ports {
		export.Ports = append(export.Ports, model.ServicePort{
			Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port,
		})
	}
	return export
}
