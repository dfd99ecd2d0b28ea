package agent

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/cilium/hive/cell"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// newRegistry creates the registry of the program, and the boundaries of all parts that serve clients, or that write
// data of remote clusters. The collection of metrics has a boundary as well, because it reads data of remote
// clusters.
func newRegistry(v version.Info, log *slog.Logger) (*prometheus.Registry, prometheus.Registerer, prometheus.Gatherer, *boundary.Boundaries) {
	reg, bounds := prometheus.NewRegistry(), boundary.New(log)
	reg.MustRegister(
		bounds,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
		buildInfo(v),
	)
	return reg, apart{reg, bounds.Part("metrics")}, reg, bounds
}

// apart registers collectors with a boundary: the registry calls them in its own goroutines, which do not recover
// panics.
type apart struct {
	prometheus.Registerer
	boundary *boundary.Boundary
}

func (a apart) Register(c prometheus.Collector) error {
	return a.Registerer.Register(collecting{c, a.boundary})
}

func (a apart) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		a.Registerer.MustRegister(collecting{c, a.boundary})
	}
}

type collecting struct {
	prometheus.Collector
	boundary *boundary.Boundary
}

func (c collecting) Collect(ch chan<- prometheus.Metric) {
	_ = c.boundary.Run(func() error { c.Collector.Collect(ch); return nil }) // the boundary counts the error
}

// newMetrics creates the metrics of the packages that several cells use.
func newMetrics(reg prometheus.Registerer) (*etcd.Metrics, *store.Metrics, *syncstore.Metrics, error) {
	writing := syncstore.NewMetrics()
	return etcd.NewMetrics(reg), store.NewMetrics(), writing, reg.Register(writing) // the mesh registers those of the store
}

func buildInfo(v version.Info) prometheus.Collector {
	return gauge("mesh_agent_build_info", "1, with the version of the program and of Go.", prometheus.Labels{"version": v.Version, "goversion": runtime.Version()}, func() float64 { return 1 })
}

func gauge(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
}

// leader does the work of a mode while all other processes stand by; nil in a mode without a leader.
type leader interface {
	// Leads reports whether this process is the leader.
	Leads() bool
	// Bootstrap is the time from the start of this term until everything was written; 0 before that, and while another
	// process leads.
	Bootstrap() time.Duration
}

// showLeader registers the metrics of leadership: whether this process leads, and its bootstrap time (wire.md §6.2).
func showLeader(m config.Mode, r role, reg prometheus.Registerer) error {
	l := r.leader
	if l == nil {
		return nil
	}
	leads := gauge("mesh_agent_leader_election_master_status", "1 while this process leads, of those that stand by for each other.", prometheus.Labels{"name": string(m)}, func() float64 {
		if l.Leads() {
			return 1
		}
		return 0
	})
	bootstrap := gauge("mesh_agent_"+string(m)+"_bootstrap_seconds", "How long it took from the lead until everything was written; 0 before that, and while another process leads.", nil,
		func() float64 { return l.Bootstrap().Seconds() })
	return errors.Join(reg.Register(leads), reg.Register(bootstrap))
}

// clusterSize returns the current number of nodes of the own cluster; 0 while it is unknown.
type clusterSize func() int

type clusterSizeParams struct {
	cell.In

	Config config.Config
	Tables *view.Tables
	Own    *local.Cluster `optional:"true"`
}

// newClusterSize returns the given number of nodes, or counts them: those of the view, or those of the description
// when the view has none.
func newClusterSize(p clusterSizeParams) clusterSize {
	if p.Config.ClusterSize > 0 {
		return p.Config.GivenSize
	}
	return func() int {
		n := p.Tables.Nodes.Count(p.Config.ClusterName)
		if n == 0 && p.Own != nil {
			n = max(p.Own.Nodes.Len(), p.Own.CiliumNodes.Len())
		}
		return n
	}
}

func showClusterSize(size clusterSize, reg prometheus.Registerer) error {
	return reg.Register(gauge("mesh_agent_cluster_size", "Nodes of the own cluster, given or counted, with which the intervals and pauses of connections grow; 0 when the number is unknown.", nil,
		func() float64 { return float64(size()) }))
}

// showIdentityRange registers the number of identities that a cluster of the mesh can have.
func showIdentityRange(c config.Config, reg prometheus.Registerer) error {
	lowest, highest := c.Layout.Range(1)
	return reg.Register(gauge("mesh_agent_identity_range_size", "Identities that a cluster of this mesh can have, by --max-connected-clusters.", nil,
		func() float64 { return float64(highest - lowest + 1) }))
}
