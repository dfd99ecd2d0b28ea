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
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// slicesRole has the rights that an operator needs for EndpointSlices of remote backends.
const slicesRole = "deploy/endpointslices.yaml"

// importsRole has the rights that an operator needs for the objects of the MCS API.
const importsRole = "deploy/mcs.yaml"

// remotesCell writes objects that follow from remote clusters while the operator leads, when a flag says
// so: EndpointSlices of their backends, imports of what they export. Only then does an operator read them.
func remotesCell() cell.Cell {
	return cell.Group(
		cell.Provide(newRemoteObjects, func(o *operate.Operator, r *remoteObjects) (meshReaders, leader) {
			if r == nil {
				return meshReaders{Readiness: o}, o
			}
			m := r.mesh
			return meshReaders{Remotes: m, Own: m, Directory: m, Readiness: o, Keys: m, Missing: m.Missing}, o
		}),
		cell.Invoke(readRemotes),
	)
}

// remoteObjects are the clusters that an operator reads, and what writes what follows from them. Nil
// without a flag for it.
type remoteObjects struct {
	mesh        *clustermesh.Mesh
	controllers []func(context.Context) error
	writers     []*kubewrite.Writer // of the controllers
}

// run runs what writes during a term, each write with the proof that this is still the leader.
func (r *remoteObjects) run(ctx context.Context, leading func(context.Context) error) error {
	for _, w := range r.writers {
		w.Prove(leading)
	}
	return waiting.Together(ctx, r.controllers...)
}

func newRemoteObjects(p meshParams, all *services.Services, bounds *boundary.Boundaries, lc cell.Lifecycle) (*remoteObjects, error) {
	if !p.Config.Operate.ReadsRemotes() {
		return nil, nil
	}
	p.View.Reads = remotesNeed(p.Config.Operate)
	m, err := newMesh(p)
	if err != nil {
		return nil, err
	}
	o := &remoteObjects{mesh: m}
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
			DB: p.View.DB, Cluster: p.From, Services: all, Ready: isReady(m), Remotes: remotes(m, servicesRead),
			Writer: w, Report: report, Boundary: bounds.Part("endpointslices"), Metrics: metrics, Log: p.Log,
		}
		if !p.Config.Operate.OwnAddresses {
			slices.OwnNetworks = p.View.IPs
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
			DB: p.View.DB, Own: p.Config.Own(), GlobalNamespaces: p.Config.Local.GlobalNamespaces, Cluster: p.From, Services: all,
			Ready: isReady(m), Remotes: remotes(m, exportsRead), Writer: w,
			Slices: p.Config.Operate.WhichSlices(), InstallCRDs: p.Config.Operate.InstallCRDs, Labels: labels, Annotations: annotations,
			MaxImports: int(p.Config.Operate.MaxImports), Report: report, Boundary: bounds.Part("mcs"), Metrics: metrics, Log: p.Log,
		}).Run)
	}
	return o, nil
}

// newKubeWriter returns what writes for a flag, and registers the metrics of that.
func newKubeWriter(p meshParams, flag, role string, metrics prometheus.Collector, lc cell.Lifecycle) (*kubewrite.Writer, error) {
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

// remotesNeed says what is read of the clusters: for slices, services of remote clusters in both formats, and
// nodes of the own one, whose networks no remote can have backends in (docs/claims.md); for imports what
// remote clusters export.
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

// remotes are the clusters of the mesh directory. What one says that is being removed counts at once.
func remotes(m *clustermesh.Mesh, read func(remotecluster.Status) bool) func() []reconcile.Remote {
	return func() (all []reconcile.Remote) {
		for _, c := range m.Clusters() {
			all = append(all, reconcile.Remote{Name: c.Name, Read: read(c) || c.State == remotecluster.Removing})
		}
		return all
	}
}

func servicesRead(c remotecluster.Status) bool { return len(clustermesh.Unsynced(c)) == 0 }

// exportsRead: exports are optional, so a cluster may be synced without them; one that exports nothing counts as read.
func exportsRead(c remotecluster.Status) bool { return c.Sources[wire.ServiceExports].Synced }

// readRemotes runs what an operator without the flag has not.
func readRemotes(r *remoteObjects, c config.Config, current *claims.Current, from *local.Cluster, v *clustermesh.View, h cell.Health, jobs job.Group, log *slog.Logger) error {
	if r == nil {
		return nil
	}
	showLocal(c, from, v, jobs, log)
	runs(jobs, "mesh", r.mesh.Run)
	if err := tellUnknownNetworks(c, log); err != nil {
		return err
	}
	return followClaims(c, current, h, jobs, log)
}
