package random

import (
	"iter"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Chunks makes n objects of one kind, so many at once. Those of the kind
// clusterconfig are of n clusters, the others of the one given.
func Chunks(seed uint64, n, atOnce int, kind model.Kind, c Cluster) iter.Seq[model.Objects] {
	m := New(seed, c)
	return func(yield func(model.Objects) bool) {
		for first := 0; first < n; first += atOnce {
			if !yield(m.OfKind(kind, first, min(atOnce, n-first))) {
				return
			}
		}
	}
}

// OfKind makes n objects of a kind, from the first on.
func (m *Maker) OfKind(kind model.Kind, first, n int) model.Objects {
	var o model.Objects
	switch kind {
	case model.ClusterConfigs:
		o.ClusterConfigs = several(first, n, m.anyConfig)
	case model.Nodes:
		o.Nodes = several(first, n, m.Node)
	case model.Services:
		o.Services = several(first, n, m.Service)
	case model.EndpointSlices:
		o.EndpointSlices = several(first, n, m.EndpointSlice)
	case model.ServiceExports:
		o.ServiceExports = several(first, n, m.ServiceExport)
	case model.Identities:
		o.Identities = several(first, n, m.Identity)
	case model.Addresses:
		o.Addresses = several(first, n, m.Address)
	}
	return o
}

// anyConfig makes the configuration of the i-th other cluster of the mesh. What it
// says of the mesh's size matters only when that is 511.
func (m *Maker) anyConfig(i int) model.ClusterConfig {
	limit := m.cluster.MaxConnectedClusters
	config := m.ClusterConfig()
	config.Cluster = name("cluster-", i, 32)
	config.ID = pick(m.r, 1, 255, limit, 1+m.r.Uint32N(limit))
	if limit != 511 {
		config.MaxConnectedClusters = pick(m.r, uint32(0), 255, 511, 1<<32-1)
	}
	return config
}
