//go:build !before1.20

package main

import (
	cmslice "github.com/cilium/cilium/pkg/clustermesh/types/endpointslice"
	corev1 "github.com/cilium/cilium/pkg/k8s/slim/k8s/api/core/v1"
	discoveryv1 "github.com/cilium/cilium/pkg/k8s/slim/k8s/api/discovery/v1"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func endpointSlices() kind {
	return kind{
		name:   model.EndpointSlices,
		prefix: cmslice.EndpointSliceStorePrefix,
		encode: func(o *model.Objects) []store.Key { return newKeys(o.EndpointSlices, newEndpointSlice) },
		creator: func(e model.Expect) store.KeyCreator {
			return cmslice.KeyCreator(cmslice.ClusterNameValidator(e.Cluster),
				cmslice.NamespacedNameValidator(), cmslice.ClusterIDValidator(&e.ClusterID))
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			s := &key.(*cmslice.ValidatingClusterEndpointSlice).ClusterEndpointSlice
			into.EndpointSlices = append(into.EndpointSlices, modelEndpointSlice(s))
			return nil
		},
	}
}

func newEndpointSlice(s model.EndpointSlice) *cmslice.ClusterEndpointSlice {
	slice := &cmslice.ClusterEndpointSlice{
		Cluster: s.Cluster, ClusterID: s.ClusterID, Namespace: s.Namespace, Name: s.Name,
		Labels: s.Labels, Annotations: s.Annotations,
		AddressType: discoveryv1.AddressType(s.AddressType),
	}
	for _, e := range s.Endpoints {
		endpoint := discoveryv1.Endpoint{
			Addresses:  e.Addresses,
			Conditions: discoveryv1.EndpointConditions{Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating},
			Hostname:   e.Hostname, NodeName: e.NodeName, Zone: e.Zone,
			DeprecatedTopology: e.Topology,
		}
		if e.Hints != nil {
			endpoint.Hints = &discoveryv1.EndpointHints{}
			for _, name := range e.Hints.ForZones {
				endpoint.Hints.ForZones = append(endpoint.Hints.ForZones, discoveryv1.ForZone{Name: name})
			}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	for _, p := range s.Ports {
		port := discoveryv1.EndpointPort{Name: p.Name, Port: p.Port, AppProtocol: p.AppProtocol}
		if p.Protocol != nil {
			protocol := corev1.Protocol(*p.Protocol)
			port.Protocol = &protocol
		}
		slice.Ports = append(slice.Ports, port)
	}
	return slice
}

func modelEndpointSlice(s *cmslice.ClusterEndpointSlice) model.EndpointSlice {
	slice := model.EndpointSlice{
		Cluster: s.Cluster, ClusterID: s.ClusterID, Namespace: s.Namespace, Name: s.Name,
		Labels: s.Labels, Annotations: s.Annotations,
		AddressType: string(s.AddressType),
	}
	for _, e := range s.Endpoints {
		endpoint := model.Endpoint{
			Addresses: e.Addresses,
			Ready:     e.Conditions.Ready, Serving: e.Conditions.Serving, Terminating: e.Conditions.Terminating,
			Hostname: e.Hostname, NodeName: e.NodeName, Zone: e.Zone,
			Topology: e.DeprecatedTopology,
		}
		if e.Hints != nil {
			endpoint.Hints = &model.Hints{}
			for _, z := range e.Hints.ForZones {
				endpoint.Hints.ForZones = append(endpoint.Hints.ForZones, z.Name)
			}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	for _, p := range s.Ports {
		slice.Ports = append(slice.Ports, model.EndpointPort{
			Name: p.Name, Protocol: (*string)(p.Protocol), Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	return slice
}
