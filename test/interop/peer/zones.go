//go:build !before1.19

package main

import (
	"net/netip"

	clusterstore "github.com/cilium/cilium/pkg/clustermesh/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func setZones(s *clusterService, zones map[netip.Addr]model.Zone) {
	for addr, zone := range zones {
		z := clusterstore.BackendZone{Zone: zone.Zone, ForZones: []clusterstore.ForZone{}}
		for _, name := range zone.ForZones {
			z.ForZones = append(z.ForZones, clusterstore.ForZone{Name: name})
		}
		s.Zones[addr.String()] = z
	}
}

func modelZones(s *clusterService) (map[netip.Addr]model.Zone, error) {
	return byAddress(s.Zones, func(z clusterstore.BackendZone) model.Zone {
		zone := model.Zone{Zone: z.Zone}
		for _, name := range z.ForZones {
			zone.ForZones = append(zone.ForZones, name.Name)
		}
		return zone
	})
}
