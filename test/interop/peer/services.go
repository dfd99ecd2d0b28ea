package main

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/loadbalancer"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func services() kind {
	return kind{
		name:    model.Services,
		prefix:  serviceStorePrefix(),
		encode:  func(o *model.Objects) []store.Key { return newKeys(o.Services, newService) },
		creator: serviceCreator,
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			s, err := modelService(&key.(*validatingClusterService).ClusterService)
			into.Services = append(into.Services, s)
			return err
		},
	}
}

func newService(s model.Service) *clusterService {
	service := emptyService(s.Namespace, s.Name)
	service.Cluster, service.ClusterID = s.Cluster, s.ClusterID
	service.Labels, service.Selector = s.Labels, s.Selector
	service.IncludeExternal, service.Shared = s.IncludeExternal, s.Shared
	for addr, ports := range s.Frontends {
		service.Frontends[addr.String()] = newPorts(ports)
	}
	for addr, ports := range s.Backends {
		service.Backends[addr.String()] = newPorts(ports)
	}
	for addr, name := range s.Hostnames {
		service.Hostnames[addr.String()] = name
	}
	setZones(&service, s.Zones)
	return &service
}

func newPorts(ports model.Ports) portConfiguration {
	p := portConfiguration{}
	for name, l4 := range ports {
		p[name] = &loadbalancer.L4Addr{Protocol: loadbalancer.L4Type(l4.Protocol), Port: l4.Port}
	}
	return p
}

func modelService(s *clusterService) (model.Service, error) {
	service := model.Service{
		Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name, ClusterID: s.ClusterID,
		Frontends: map[netip.Addr]model.Ports{},
		Backends:  map[netip.Addr]model.Ports{},
		Labels:    s.Labels, Selector: s.Selector,
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
	service.Zones, err = modelZones(s)
	return service, err
}

func modelPorts(ports portConfiguration) model.Ports {
	p := model.Ports{}
	for name, l4 := range ports {
		if l4 == nil { // null
			l4 = &loadbalancer.L4Addr{}
		}
		p[name] = model.L4{Protocol: string(l4.Protocol), Port: l4.Port}
	}
	return p
}

// byAddress translates a map by the text of addresses.
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
