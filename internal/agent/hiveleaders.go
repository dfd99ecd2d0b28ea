package agent

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/internal/own/rights"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

func operateCell() cell.Cell {
	return cell.Module(
		"operate", "Tasks of the leader",
		cell.Provide(newOperator, func(c config.Config, o *operate.Operator) role {
			r := role{module: "operate", reads: remotesNeed(c.Operate), ready: o.Ready, leader: o}
			if !c.Operate.ReadsRemotes() {
				r.reader = clustermesh.None{}
			}
			return r
		}),
		remotesCell(),
		cell.Invoke(func(jobs job.Group, o *operate.Operator) { runs(jobs, "lead", o.Run) }),
	)
}

func newOperator(
	c config.Config, from *local.Cluster, w *kvstore.Durable, writing *syncstore.Metrics, reg prometheus.Registerer, h cell.Health, log *slog.Logger,
) (*operate.Operator, error) {
	allocation, err := c.AllocationBackend(nil)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	p := operate.Params{
		Allocation: allocation,
		Own:        c.Own, Writer: w, GlobalNamespaces: c.Local.GlobalNamespaces, ServiceExports: c.Operate.PublishesExports(),
		NodesAndAddresses: c.Operate.NodesAndAddresses, SlicesOnly: c.Operate.PublishesSlicesOnly(),
		Identities: identity.Owner{Name: c.ClusterName, ID: c.ClusterID, Layout: c.Layout},
		GCInterval: c.Operate.GCInterval, GCPerMinute: c.Operate.GCPerMinute, LocksGCInterval: operate.DefaultLocksGCInterval,
		Report: reportTasks(h), Published: w.BootstrapComplete, Metrics: writing, Collected: allocator.NewMetrics(reg), Log: log,
	}
	if c.Local.Given() {
		p.Source = from
	}
	if c.Operate.EnsureUsers {
		p.Provision = func(ctx context.Context) error { return ensureUsers(c, ctx, w) }
	}
	return operate.New(p)
}

// reportTasks returns a function that reports the result of an operator's task in the health.
func reportTasks(h cell.Health) func(task string, err error) {
	var mu sync.Mutex
	reports := make(map[string]func(error))
	return func(task string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if reports[task] == nil {
			reports[task] = reporting(h.NewScope(task), "tried again", "done")
		}
		reports[task](err)
	}
}

// ensureUsers creates the users of the own etcd. It reads the users file each time.
func ensureUsers(c config.Config, ctx context.Context, w *kvstore.Durable) error {
	users, err := c.Users()
	if err != nil {
		return err
	}
	cfg, err := c.KVStoreOpt.Config()
	if err != nil {
		return err
	}
	return etcd.Administer(ctx, w, func(ctx context.Context, e *etcd.Session) error {
		return rights.Provision(ctx, e, c.ClusterName, cfg.UserName(), users)
	})
}

func mirrorCell() cell.Cell {
	return cell.Module(
		"mirror", "Copies the remote clusters into the own kvstore",
		cell.Provide(newMirror, func(m *mirror.Mirror) role { return role{module: "mirror", reader: m, leader: m} }),
		cell.Invoke(followClaims),
		cell.Invoke(func(jobs job.Group, m *mirror.Mirror) { runs(jobs, "lead", m.Run) }),
	)
}

// stopping is implemented by a leader that stops writing to an etcd that is nearly full.
type stopping interface {
	Stopped() (code codes.Code, why string)
}

func newMirror(
	c config.Config, granted *claims.Current, size clusterSize, w *kvstore.Durable, of *etcd.Metrics, reading *store.Metrics, writing *syncstore.Metrics,
	reg prometheus.Registerer, h cell.Health, log *slog.Logger,
) (*mirror.Mirror, error) {
	opts := c.KVStoreOptions()
	opts.Metrics, opts.ClusterSize, opts.Log = of, size, log
	m, err := mirror.New(mirror.Params{
		Params: clustermesh.Params{
			Granted: granted, StateDir: c.Claims.StateDir, Directory: c.ClustermeshConfig, Local: c.Own, Engine: opts, CacheTTL: c.ClustermeshCacheTTL,
			SyncTimeout: c.Mirror.SyncTimeout, Budgets: c.MirrorBudget, Batches: store.NewTurns(runtime.GOMAXPROCS(0)), Lists: mesh.ListsAtOnce(),
			Report: reportDirectory(h.NewScope("directory"), c.ClustermeshConfig), Log: log,
		},
		Writer: w, ReadyTimeout: c.Mirror.ReadyTimeout, DrainDelay: c.Mirror.DrainDelay, KeepRemoved: c.Mirror.KeepRemoved,
		Rate: c.MirrorRate, Room: c.MirrorRoom, Copied: w.BootstrapComplete, Metrics: reading, Writing: writing,
	})
	if err != nil {
		return nil, err
	}
	return m, errors.Join(reg.Register(clustermesh.NewCollector(m)), reg.Register(mirror.NewCollector(m)))
}
