package agent

import (
	"github.com/cilium/hive/cell"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
)

// clusterSize returns the number of nodes of the own cluster at this moment, 0 while
// nobody knows it.
type clusterSize func() int

type clusterSizeParams struct {
	cell.In

	Config config.Config
	Nodes  *nodes.Nodes
	Own    *local.Cluster `optional:"true"`
}

// newClusterSize counts the nodes unless their number is given: those of the view,
// or those of the description where the view has none of them.
func newClusterSize(p clusterSizeParams) clusterSize {
	if p.Config.ClusterSize > 0 {
		return p.Config.GivenSize
	}
	return func() int {
		n := p.Nodes.Count(p.Config.ClusterName)
		if n == 0 && p.Own != nil {
			n = max(p.Own.Nodes.Len(), p.Own.CiliumNodes.Len())
		}
		return n
	}
}

// showClusterSize makes the size a metric.
func showClusterSize(size clusterSize, reg prometheus.Registerer) error {
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_agent_cluster_size",
		Help: "Nodes of the own cluster, given or counted, with which the intervals and pauses of connections grow; 0 when nobody knows.",
	}, func() float64 { return float64(size()) }))
}
