package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/mirror"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// mirrorCell copies the remote clusters into the own kvstore.
func mirrorCell() cell.Cell {
	return cell.Module(
		"mirror", "Copies the remote clusters into the own kvstore",
		cell.Provide(newMirror, func(m *mirror.Mirror) (meshReaders, leader) {
			return meshReaders{Remotes: m, Directory: m, Readiness: m, Keys: m}, m
		}),
		cell.Invoke(followClaims),
		cell.Invoke(func(jobs job.Group, m *mirror.Mirror) { runs(jobs, "lead", m.Run) }),
	)
}

// stopping is what stops writing to an etcd that is nearly full.
type stopping interface {
	Stopped() (code codes.Code, why string)
}

func newMirror(
	c config.Config, granted *claims.Current, size clusterSize, w *kvstore.Durable, of *etcd.Metrics, sources *store.Metrics, writing *syncstore.Metrics,
	reg prometheus.Registerer, h cell.Health, log *slog.Logger,
) (*mirror.Mirror, error) {
	opts, err := c.KVStoreOptions()
	if err != nil {
		return nil, fmt.Errorf("--kvstore-opt: %w", err)
	}
	budgets, err := budget.ParseOn(mirror.DefaultBudget(), c.RemoteBudget)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", config.RemoteBudget, err)
	}
	opts.Metrics, opts.ClusterSize, opts.Log, opts.ConfigPath, opts.Addresses = of, size, log, "", nil
	m, err := mirror.New(mirror.Params{
		Params: clustermesh.Params{
			Granted: granted, StateDir: c.Claims.StateDir, Directory: c.ClustermeshConfig, Local: c.Own(), KVStore: opts, CacheTTL: c.ClustermeshCacheTTL,
			SyncTimeout: c.Mirror.SyncTimeout, Budgets: budgets, Batches: store.NewTurns(runtime.GOMAXPROCS(0)), Lists: mesh.ListsAtOnce(),
			Report: reportDirectory(h, c.ClustermeshConfig), Log: log,
		},
		Writer: w, ReadyTimeout: c.Mirror.ReadyTimeout, DrainDelay: c.Mirror.DrainDelay, KeepRemoved: c.Mirror.KeepRemoved,
		Rate: c.Mirror.Rate(), Room: c.Mirror.Room(), Copied: w.BootstrapComplete, Metrics: sources, Writing: writing,
	})
	if err != nil {
		return nil, err
	}
	return m, errors.Join(reg.Register(clustermesh.NewCollector(m)), reg.Register(mirror.NewCollector(m)))
}
