package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/internal/own/manifests"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/internal/own/register"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/crdbackend"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// localCell provides the description of the own cluster, and its source. Each mode reads only what it needs: an agent
// reads only the pods of its own node, and an operator reads no pods.
func localCell(m config.Mode) cell.Cell {
	return cell.Module(
		"local", "Description of the own cluster",
		cell.Provide(local.New),
		cell.Invoke(func(c config.Config, into *local.Cluster, h cell.Health, jobs job.Group, log *slog.Logger) error {
			run, err := newSource(c, m, into, h.NewScope("source"), log)
			if err == nil && run != nil {
				runs(jobs, "source", run)
			}
			return err
		}),
	)
}

// newSource returns the function that fills the description; nil when there is no source.
func newSource(c config.Config, m config.Mode, into *local.Cluster, h cell.Health, log *slog.Logger) (func(context.Context) error, error) {
	report := func(err error) {
		into.Report(err)
		switch refused := into.Refused(); {
		case err != nil:
			h.Degraded("the agent keeps the data of the own cluster", err)
		case len(refused) > 0:
			h.Degraded("not all of the description of the own cluster is used", errors.New(printer.Some(refused, 3)))
		default:
			h.OK("following " + c.Local.DescribedBy())
		}
	}
	switch {
	case c.Local.FromKubernetes():
		kubernetes.LogThrough(log)
		imports, lookAgain := m == config.ModeOperate && c.Operate.MCSAPI, time.Duration(0)
		if imports {
			lookAgain = 5 * time.Second // short, because it installs definitions itself, and only two processes of a cluster look
		}
		s, err := kubernetes.New(kubernetes.Options{
			Kubeconfig: c.Local.Kubeconfig, NodeName: c.NodeName,
			OwnPodsOnly: m == config.ModeRun, ServicesOnly: m == config.ModeOperate, Without: withoutIdentities(c, m), CiliumToo: c.Operate.NodesAndAddresses,
			Imports: imports, LookAgain: lookAgain, Report: report,
		}, into, log)
		if err != nil {
			return nil, exit.UsageError{Err: err}
		}
		return s.Run, nil
	case c.Local.Manifests != "":
		s := manifests.New(c.Local.Manifests, into, log)
		s.Report = report
		return s.Run, nil
	}
	return nil, nil
}

// withoutIdentities returns the label of the CiliumIdentities that are not part of the description of the cluster,
// because this program allocates them. It is empty for an operator with the crd mode: the operator publishes these
// identities, because no other process writes them to the kvstore.
func withoutIdentities(c config.Config, m config.Mode) string {
	if m == config.ModeOperate && c.AllocationMode == modes.CRD {
		return ""
	}
	return crdbackend.ManagedBy + "=" + crdbackend.Manager
}

// memberCell adds the own cluster to the view, and registers this node in the cluster's kvstore.
func memberCell() cell.Cell {
	return cell.Module(
		"member", "This node as its cluster sees it",
		cell.Invoke(showLocal, registerNode),
	)
}

// showLocal writes the description into the view: services always, exports and nodes only without a kvstore of the
// own cluster.
func showLocal(c config.Config, from *local.Cluster, v *clustermesh.Ingest, jobs job.Group, log *slog.Logger) {
	if !c.Local.Given() {
		return
	}
	alone := !c.KVStoreOpt.HasLocal()
	services := publish.NewOwnServices(from, c.Own, c.Local.GlobalNamespaces, v.Services, log)
	services.Exports = alone
	runs(jobs, "services", services.Run)
	if alone {
		runs(jobs, "nodes", publish.NewNodes(from, c.Own, publish.NodesParams{View: v.ApplyNodes(), Log: log}).Run)
	}
}

func registerNode(
	c config.Config, from *local.Cluster, w *kvstore.Durable, writing *syncstore.Metrics, reg prometheus.Registerer, jobs job.Group, log *slog.Logger,
) error {
	if w == nil {
		return nil
	}
	allocation, err := c.AllocationBackend(reg)
	if err != nil {
		return exit.UsageError{Err: err}
	}
	n, err := register.New(register.Params{
		Own: c.Own, Name: c.NodeName, Address: c.NodeIP, Guess: c.NodeAddress, Source: from, GlobalNamespaces: c.Local.GlobalNamespaces, Labels: c.PodLabels,
		Writer: w, Registered: w.BootstrapComplete, PeriodicSync: c.KVStore.PeriodicSync, Metrics: writing, Identities: allocator.NewMetrics(reg),
		Allocation: allocation, Log: log,
	})
	if err != nil {
		return err
	}
	runs(jobs, "register", n.Run)
	return nil
}
