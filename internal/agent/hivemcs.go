package agent

import (
	"github.com/mesh-agent/mesh-agent/internal/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kubewrite"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/serviceimports"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// importsRole has the rights that an operator needs for the objects of the MCS API.
const importsRole = "deploy/mcs.yaml"

// newServiceImports returns what writes the objects of the MCS API while the operator leads.
func newServiceImports(
	p meshParams, all *services.Services, m *clustermesh.Mesh, w *kubewrite.Writer, report func(task string, err error),
) *serviceimports.Controller {
	return serviceimports.New(serviceimports.Params{
		DB: p.View.DB, Own: p.Config.Own(), GlobalNamespaces: p.Config.Local.GlobalNamespaces, Cluster: p.From, Services: all,
		Ready: isReady(m), Remotes: func() []reconcile.Remote { return exporters(m) }, Writer: w,
		Slices: p.Config.Operate.EndpointSlices, InstallCRDs: p.Config.Operate.InstallCRDs, Report: report, Log: p.Log,
	})
}

// exporters are the clusters of the mesh directory. Exports are optional, so a cluster may be synced without
// them; one that exports nothing counts as read. What one says that is being removed counts at once.
func exporters(m *clustermesh.Mesh) (all []reconcile.Remote) {
	for _, c := range m.Clusters() {
		all = append(all, reconcile.Remote{Name: c.Name, Read: c.Sources[wire.ServiceExports].Synced || c.State == remotecluster.Removing})
	}
	return all
}
