package agent

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/internal/kube/serviceimports"
	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// slicesRole is the manifest with the rights that an operator needs for EndpointSlices of remote backends.
const slicesRole = "deploy/endpointslices.yaml"

// importsRole is the manifest with the rights that an operator needs for the objects of the MCS API.
const importsRole = "deploy/mcs.yaml"

// remotesCell writes objects that are derived from remote clusters, while the operator leads and a flag requests it:
// EndpointSlices of their backends, and imports of their exports. An operator with neither flag does not read remote
// clusters.
func remotesCell() cell.Cell {
	return cell.Group(cell.Provide(newRemoteObjects), cell.Invoke(readRemotes))
}

// remoteObjects are the controllers that write objects derived from remote clusters. It is nil without a flag for it.
type remoteObjects struct {
	controllers []func(context.Context) error
	writers     []*kubewrite.Writer // those of the controllers
}

// run runs the controllers during a term. Each write is made only after the proof that this process is still the
// leader.
func (r *remoteObjects) run(ctx context.Context, leading func(context.Context) error) error {
	for _, w := range r.writers {
		w.Prove(leading)
	}
	return waiting.Together(ctx, r.controllers...)
}

// remoteParams are the dependencies of these controllers.
type remoteParams struct {
	cell.In

	Config  config.Config
	Mesh    *mesh.Mesh
	From    *local.Cluster
	Metrics prometheus.Registerer
	Health  cell.Health
	Bounds  *boundary.Boundaries
	Cycle   cell.Lifecycle
	Log     *slog.Logger
}

func newRemoteObjects(p remoteParams) (*remoteObjects, error) {
	if !p.Config.Operate.ReadsRemotes() {
		return nil, nil
	}
	o, m, t, bounds, lc := new(remoteObjects), p.Mesh.Mesh, p.Mesh.Tables, p.Bounds, p.Cycle
	report := reportTasks(p.Health)
	if p.Config.Operate.WritesSlices() {
		metrics := endpointslices.NewMetrics()
		flag, role := config.EndpointSlices, slicesRole
		if !p.Config.Operate.EndpointSlices {
			flag, role = config.MCSAPI, importsRole
		}
		w, err := newKubeWriter(p, flag, role, metrics, lc)
		if err != nil {
			return nil, err
		}
		slices := endpointslices.Params{
			DB: t.DB, Cluster: p.From, Services: t.Services, Ready: isReady(m), Remotes: remotes(m, servicesRead),
			Writer: w, Report: report, Boundary: bounds.Part("endpointslices"), Metrics: metrics, Log: p.Log,
		}
		if !p.Config.Operate.OwnAddresses {
			slices.OwnNetworks = t.IPs
		}
		if !p.Config.Operate.EndpointSlices {
			slices.Only = serviceimports.IsDerived
		}
		o.controllers, o.writers = append(o.controllers, endpointslices.New(slices).Run), append(o.writers, w)
	}
	if p.Config.Operate.MCSAPI {
		labels, annotations, err := p.Config.Operate.Allowed()
		if err != nil {
			return nil, err
		}
		metrics := serviceimports.NewMetrics()
		w, err := newKubeWriter(p, config.MCSAPI, importsRole, metrics, lc)
		if err != nil {
			return nil, err
		}
		o.writers = append(o.writers, w)
		o.controllers = append(o.controllers, serviceimports.New(serviceimports.Params{
			DB: t.DB, Own: p.Config.Own(), GlobalNamespaces: p.Config.Local.GlobalNamespaces, Cluster: p.From, Services: t.Services,
			Ready: isReady(m), Remotes: remotes(m, exportsRead), Writer: w,
			Slices: p.Config.Operate.WhichSlices(), InstallCRDs: p.Config.Operate.InstallCRDs, Labels: labels, Annotations: annotations,
			MaxImports: int(p.Config.Operate.MaxImports), Report: report, Boundary: bounds.Part("mcs"), Metrics: metrics, Log: p.Log,
		}).Run)
	}
	return o, nil
}

// newKubeWriter returns the writer of a flag's objects, and registers its metrics.
func newKubeWriter(p remoteParams, flag, role string, metrics prometheus.Collector, lc cell.Lifecycle) (*kubewrite.Writer, error) {
	if err := p.Metrics.Register(metrics); err != nil {
		return nil, err
	}
	access, err := kubernetes.Configuration(p.Config.Local.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	w, err := kubewrite.New(access, kubewrite.Options{Role: role})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	lc.Append(cell.Hook{OnStop: func(cell.HookContext) error { w.Close(); return nil }})
	return w, nil
}

func isReady(m *clustermesh.Mesh) func() bool {
	return func() bool { ready, _ := m.Ready(); return ready }
}

// remotesNeed reports which resources are read from the clusters. EndpointSlices need services of remote clusters in
// both formats, and nodes of the own cluster: no remote cluster can have backends in the networks of these nodes
// (docs/claims.md). Imports need the exports of remote clusters.
func remotesNeed(c config.OperateConfig) func(own bool, r wire.Resource) bool {
	return func(own bool, r wire.Resource) bool {
		switch r {
		case wire.Services, wire.EndpointSlices:
			return c.WritesSlices()
		case wire.Nodes:
			return own && c.WritesSlices()
		case wire.ServiceExports:
			return !own && c.MCSAPI
		}
		return false
	}
}

// remotes returns the clusters of the mesh directory. A cluster that is being removed counts as read at once.
func remotes(m *clustermesh.Mesh, read func(remotecluster.Status) bool) func() []reconcile.Remote {
	return func() (all []reconcile.Remote) {
		for _, c := range m.Clusters() {
			all = append(all, reconcile.Remote{Name: c.Name, Read: read(c) || c.State == remotecluster.Removing})
		}
		return all
	}
}

func servicesRead(c remotecluster.Status) bool { return len(clustermesh.Unsynced(c)) == 0 }

// exportsRead reports whether the exports of a cluster were read. Exports are optional: a cluster may be synced
// without them. A cluster that exports nothing counts as read.
func exportsRead(c remotecluster.Status) bool { return c.Sources[wire.ServiceExports].Synced }

// readRemotes runs the parts that an operator needs to read remote clusters; none without a flag for it.
func readRemotes(o *operate.Operator, r *remoteObjects, c config.Config, current *claims.Current, from *local.Cluster, m *mesh.Mesh, h cell.Health, jobs job.Group, log *slog.Logger) error {
	if r == nil {
		return nil
	}
	o.While = r.run
	showLocal(c, from, m.Ingest, jobs, log)
	runs(jobs, "mesh", m.Mesh.Run)
	if err := tellUnknownNetworks(c, log); err != nil {
		return err
	}
	return followClaims(c, current, h, jobs, log)
}
