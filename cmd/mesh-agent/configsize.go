package main

import (
	"github.com/cilium/hive/cell"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
)

// clusterSizeFlag is the flag for the size of the own cluster.
const (
	clusterSizeFlag = "cluster-size"
	clusterSizeHelp = "number of nodes of the own cluster: the more there are, the less often each asks a kvstore whether it is well, and the longer it waits " +
		"before it connects again (docs/performance.md); 0 counts them, in the own kvstore or in what describes the own cluster, and without both there is one"
)

// givenSize is the size of the own cluster that a person gave; 0 for none.
func (c Config) givenSize() int { return int(c.ClusterSize) }

// clusterSize returns the number of nodes of the own cluster at this moment, 0 while
// nobody knows it.
type clusterSize func() int

type clusterSizeParams struct {
	cell.In

	Config Config
	Nodes  *nodes.Nodes
	Own    *local.Cluster `optional:"true"`
}

// newClusterSize counts the nodes unless their number is given: those of the view,
// or those of the description where the view has none of them.
func newClusterSize(p clusterSizeParams) clusterSize {
	if p.Config.ClusterSize > 0 {
		return p.Config.givenSize
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
