package httpapi

import (
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type described interface {
	watchable
	routes(s *Server) []route
}

// allResources returns all resources that can be listed and watched.
func allResources() []described {
	return []described{
		clusterResource(), nodeResource(), serviceResource(), exportResource(), identityResource(), ipResource(),
		conflictResource(), eventResource(), healthResource(),
	}
}

func toCapabilities(from *wire.Capabilities) api.Capabilities {
	if from == nil {
		return api.Capabilities{}
	}
	return api.Capabilities{
		SyncedCanaries:           &from.SyncedCanaries,
		Cached:                   &from.Cached,
		MaxConnectedClusters:     &from.MaxConnectedClusters,
		ServiceExportsEnabled:    from.ServiceExportsEnabled,
		EndpointSlicesExportMode: &from.EndpointSlicesExportMode,
	}
}
