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
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
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
type remoteObjects struct{ controllers []*controller }

// controller writes objects of one kind.
type controller struct {
	run    func(context.Context) error
	writer *kubewrite.Writer
}

// run runs the controllers during a term. Each write is made only after the proof that this process is still the
// leader.
func (r *remoteObjects) run(ctx context.Context, leading func(context.Context) error) error {
	var runs []func(context.Context) error
	for _, c := range r.controllers {
		c.writer.Prove(leading)
		runs = append(runs, c.run)
	}
	return waiting.Together(ctx, runs...)
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
	o, report := new(remoteObjects), reportTasks(p.Health)
	for _, of := range []func(remoteParams, func(task string, err error)) (*controller, error){ofSlices, ofImports} {
		c, err := of(p, report)
		if err != nil {
			return nil, err
		}
		if c != nil {
			o.controllers = append(o.controllers, c)
		}
	}
	return o, nil
}

// ofSlices returns the controller of EndpointSlices; nil without a flag for it.
func ofSlices(p remoteParams, report func(task string, err error)) (*controller, error) {
	c := p.Config.Operate
	if !c.WritesSlices() {
		return nil, nil
	}
	flag, role, metrics := config.EndpointSlices, slicesRole, endpointslices.NewMetrics()
	if !c.EndpointSlices {
		flag, role = config.MCSAPI, importsRole
	}
	w, err := newKubeWriter(p, flag, role, metrics)
	if err != nil {
		return nil, err
	}
	slices := endpointslices.Params{
		DB: p.Mesh.Tables.DB, Cluster: p.From, Services: p.Mesh.Tables.Services, Ready: reconcile.ReadyOf(p.Mesh.Remotes), Remotes: reconcile.RemotesOf(p.Mesh.Remotes, reconcile.ServicesRead),
		Writer: w, Report: report, Boundary: p.Bounds.Part("endpointslices"), Metrics: metrics, Log: p.Log,
	}
	if !c.OwnAddresses {
		slices.OwnNetworks = p.Mesh.Tables.IPs
	}
	if !c.EndpointSlices {
		slices.Only = serviceimports.IsDerived
	}
	return &controller{run: endpointslices.New(slices).Run, writer: w}, nil
}

// ofImports returns the controller of the objects of the MCS API; nil without its flag.
func ofImports(p remoteParams, report func(task string, err error)) (*controller, error) {
	c := p.Config.Operate
	if !c.MCSAPI {
		return nil, nil
	}
	metrics := serviceimports.NewMetrics()
	w, err := newKubeWriter(p, config.MCSAPI, importsRole, metrics)
	if err != nil {
		return nil, err
	}
	run := serviceimports.New(serviceimports.Params{
		DB: p.Mesh.Tables.DB, Own: p.Config.Own, GlobalNamespaces: p.Config.Local.GlobalNamespaces, Cluster: p.From, Services: p.Mesh.Tables.Services,
		Ready: reconcile.ReadyOf(p.Mesh.Remotes), Remotes: reconcile.RemotesOf(p.Mesh.Remotes, reconcile.ExportsRead), Writer: w,
		Slices: c.WhichSlices(), InstallCRDs: c.InstallCRDs, Labels: p.Config.ExportLabels, Annotations: p.Config.ExportAnnotations,
		MaxImports: int(c.MaxImports), Report: report, Boundary: p.Bounds.Part("mcs"), Metrics: metrics, Log: p.Log,
	}).Run
	return &controller{run: run, writer: w}, nil
}

// newKubeWriter returns the writer of a flag's objects, and registers its metrics.
func newKubeWriter(p remoteParams, flag, role string, metrics prometheus.Collector) (*kubewrite.Writer, error) {
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
	p.Cycle.Append(cell.Hook{OnStop: func(cell.HookContext) error { w.Close(); return nil }})
	return w, nil
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

// readRemotes runs the parts that an operator needs to read remote clusters; none without a flag for it.
func readRemotes(o *operate.Operator, r *remoteObjects, c config.Config, current *claims.Current, from *local.Cluster, m *mesh.Mesh, h cell.Health, jobs job.Group, log *slog.Logger) {
	if r == nil {
		return
	}
	o.While = r.run
	showLocal(c, from, m.Ingest, jobs, log)
	runs(jobs, "mesh", m.Remotes.Run)
	tellUnknownNetworks(c, log)
	followClaims(c, current, h, jobs, log)
}
