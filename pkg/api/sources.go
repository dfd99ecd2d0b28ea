package api

import (
	"errors"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/health"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Mesh is what the server asks about the remote clusters. Its methods answer at
// once and may be called by any goroutine.
type Mesh interface {
	// Clusters describes every cluster at this moment, sorted by name.
	Clusters() []remotecluster.Status
	// Ready tells whether every configured cluster was synced once, or the sync
	// timeout has passed. Once true it stays true. The reasons say by cluster
	// what is waited for.
	Ready() (bool, map[string]string)
	// Revision grows with every change of what Clusters answers.
	Revision() uint64
}

// Sources is what a server reads. All of it is needed.
type Sources struct {
	Agent      AgentInfo
	DB         *statedb.DB
	Mesh       Mesh
	Nodes      statedb.Table[*nodes.Node]
	Exported   statedb.Table[*services.Service]
	Services   statedb.Table[*services.Global]
	Identities statedb.Table[*allocator.Identity]
	IPs        *ipcache.Cache
	Health     *health.Registry
	Gatherer   prometheus.Gatherer
}

func (s *Sources) validate() error {
	if s.DB == nil || s.Mesh == nil || s.Nodes == nil || s.Exported == nil || s.Services == nil ||
		s.Identities == nil || s.IPs == nil || s.Health == nil || s.Gatherer == nil {
		return errors.New("api: a source is missing")
	}
	return nil
}

// view is one consistent state of everything that is listed.
type view struct {
	txn      statedb.ReadTxn
	ips      *ipcache.Snapshot
	clusters []remotecluster.Status
	// revision is not newer than the rest of the view.
	revision uint64
}

// view takes a snapshot. The revision is read first.
func (s *Server) view() *view {
	v := &view{revision: s.Mesh.Revision()}
	v.clusters = s.Mesh.Clusters()
	v.ips = s.IPs.Snapshot()
	v.revision += v.ips.Revision()
	v.txn = s.DB.ReadTxn()
	for _, table := range []statedb.TableMeta{s.Nodes, s.Exported, s.Services, s.Identities} {
		v.revision += table.Revision(v.txn)
	}
	return v
}
