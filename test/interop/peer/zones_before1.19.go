//go:build before1.19

package main

import (
	"net/netip"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// The release knows no zones.

func setZones(*clusterService, map[netip.Addr]model.Zone) {}

func modelZones(*clusterService) (map[netip.Addr]model.Zone, error) { return nil, nil }
