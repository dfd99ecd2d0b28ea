package agent

import (
	"fmt"
	"log/slog"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/kubewrite"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/local/kubernetes"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// slicesRole has the rights that an operator needs for what slicesCell writes.
const slicesRole = "deploy/endpointslices.yaml"

// slicesCell writes EndpointSlices of remote backends while the operator leads, when a flag says so. Only
// then does an operator read remote clusters.
func slicesCell() cell.Cell {
	return cell.Group(
		cell.Provide(newRemoteSlices, func(o *operate.Operator, s *remoteSlices) (meshReaders, leader) {
			if s == nil {
				return meshReaders{Readiness: o}, o
			}
			m := s.mesh
			return meshReaders{Remotes: m, Own: m, Directory: m, Readiness: o, Keys: m, Missing: m.Missing}, o
		}),
		cell.Invoke(readRemotes),
	)
}

// remoteSlices are the clusters that an operator reads, and what follows from them. Nil without the flag.
type remoteSlices struct {
	mesh       *clustermesh.Mesh
	controller *endpointslices.Controller
}

func newRemoteSlices(p meshParams, all *services.Services, lc cell.Lifecycle) (*remoteSlices, error) {
	if !p.Config.Operate.EndpointSlices {
		return nil, nil
	}
	access, err := kubernetes.Configuration(p.Config.Local.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", config.EndpointSlices, err)
	}
	w, err := kubewrite.New(access, kubewrite.Options{Role: slicesRole})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", config.EndpointSlices, err)
	}
	lc.Append(cell.Hook{OnStop: func(cell.HookContext) error { w.Close(); return nil }})
	p.View.Reads = slicesNeed
	m, err := newMesh(p)
	if err != nil {
		return nil, err
	}
	metrics := endpointslices.NewMetrics()
	return &remoteSlices{mesh: m, controller: endpointslices.New(endpointslices.Params{
		DB: p.View.DB, Cluster: p.From, Services: all, Ready: func() bool { ready, _ := m.Ready(); return ready }, Remotes: func() []endpointslices.Remote { return remotes(m) },
		Writer: w, Report: reportTasks(p.Health), Metrics: metrics, Log: p.Log,
	})}, p.Metrics.Register(metrics)
}

// slicesNeed says what is read for slices: services of remote clusters in both formats, and nodes of the own
// one, whose networks no remote can have backends in (docs/claims.md).
func slicesNeed(own bool, r wire.Resource) bool {
	return r == wire.Services || r == wire.EndpointSlices || own && r == wire.Nodes
}

// remotes are the clusters of the mesh directory. What one says that is being removed counts at once.
func remotes(m *clustermesh.Mesh) (all []endpointslices.Remote) {
	for _, c := range m.Clusters() {
		all = append(all, endpointslices.Remote{Name: c.Name, Read: len(clustermesh.Unsynced(c)) == 0 || c.State == remotecluster.Removing})
	}
	return all
}

// readRemotes runs what an operator without the flag has not.
func readRemotes(s *remoteSlices, c config.Config, current *claims.Current, from *local.Cluster, v *clustermesh.View, h cell.Health, jobs job.Group, log *slog.Logger) error {
	if s == nil {
		return nil
	}
	showLocal(c, from, v, jobs, log)
	runs(jobs, "mesh", s.mesh.Run)
	if err := tellUnknownNetworks(c, log); err != nil {
		return err
	}
	return followClaims(c, current, h, jobs, log)
}
