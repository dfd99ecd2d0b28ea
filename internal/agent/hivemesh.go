package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// warnOfBudgets logs the clusters that have a budget and no client file: their names may be misspelled.
func warnOfBudgets(b budget.Budgets, directory string, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(b.Clusters)) {
		if _, err := os.Stat(filepath.Join(directory, name)); errors.Is(err, fs.ErrNotExist) {
			log.Warn("--remote-budget names a cluster without a client file; check the name", "cluster", name, "directory", directory)
		}
	}
}

func meshCell() cell.Cell {
	return cell.Module(
		"clustermesh", "The mesh directory and one controller per remote cluster",
		cell.Provide(newMesh, func(m *clustermesh.Mesh) (meshReaders, leader) {
			return meshReaders{Remotes: m, Own: m, Directory: m, Readiness: m, Keys: m, Missing: m.Missing}, nil
		}),
		cell.Invoke(tellUnknownNetworks, followClaims),
		cell.Invoke(func(jobs job.Group, m *clustermesh.Mesh) { runs(jobs, "mesh", m.Run) }),
	)
}

// runs adds a job that runs until the program stops.
func runs(jobs job.Group, name string, run func(context.Context) error) {
	saying(jobs, name, "running", run)
}

// saying does the same as runs, with another message in the health.
func saying(jobs job.Group, name, message string, run func(context.Context) error) {
	jobs.Add(job.OneShot(name, func(ctx context.Context, h cell.Health) error {
		h.OK(message)
		return run(ctx)
	}, job.WithShutdown()))
}

// meshParams are the dependencies of the clusters of the mesh directory.
type meshParams struct {
	cell.In

	Config  config.Config
	View    *clustermesh.View
	Granted *claims.Current
	From    *local.Cluster
	Size    clusterSize
	Etcd    *etcd.Metrics
	Sources *store.Metrics
	Metrics prometheus.Registerer
	Health  cell.Health
	Log     *slog.Logger
}

func newMesh(p meshParams) (*clustermesh.Mesh, error) {
	c, v, log := p.Config, p.View, p.Log
	opts, err := c.KVStoreOptions()
	if err != nil {
		return nil, fmt.Errorf("--kvstore-opt: %w", err)
	}
	policy, err := disconnect.ParsePolicy(c.DisconnectPolicy)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", config.DisconnectPolicy, err)
	}
	budgets, err := budget.Parse(c.RemoteBudget)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", config.RemoteBudget, err)
	}
	warnOfBudgets(budgets, c.ClustermeshConfig, log)
	opts.Metrics, opts.ClusterSize, opts.Log = p.Etcd, p.Size, log
	if c.Local.Given() {
		v.Described = describedBy(p.From)
	}
	m := mesh.Config{
		Directory: c.ClustermeshConfig, ClusterName: c.ClusterName, ClusterID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters,
		SyncTimeout: c.ClustermeshSyncTimeout, CacheTTL: c.ClustermeshCacheTTL, Policy: &policy, Budgets: &budgets, Memory: budget.NewMemory(c.RemoteMemoryLimit()),
		Granted: p.Granted, StateDir: c.Claims.StateDir, KVStore: &opts, Report: reportDirectory(p.Health, c.ClustermeshConfig), Log: log,
	}.Clusters(v, p.Sources)
	return m, p.Metrics.Register(clustermesh.NewCollector(m))
}

// reportDirectory returns a function that reports in the health whether the mesh directory can be read.
func reportDirectory(h cell.Health, path string) func(error) {
	return reporting(h.NewScope("directory"), "waiting for the mesh directory; the agent keeps its data", "watching "+path)
}

// reporting returns a function that reports an error in the health, or that there is none.
func reporting(h cell.Health, failed, well string) func(error) {
	return func(err error) {
		if err != nil {
			h.Degraded(failed, err)
			return
		}
		h.OK(well)
	}
}

func newIPs(c config.Config) (*ipcache.Cache, error) {
	rules, err := c.Claims.Rules()
	if err != nil {
		return nil, err
	}
	return ipcache.New(rules), nil
}

// tellUnknownNetworks logs the flags of own networks that this agent does not know, and that remote clusters can
// therefore claim. Where the agent reads its own nodes, these announce the pod networks.
func tellUnknownNetworks(c config.Config, log *slog.Logger) error {
	opts, err := c.KVStoreOptions()
	if err != nil {
		return err
	}
	var missing []string
	if c.Claims.PodCIDR == "" && !opts.HasLocal() && !c.Local.Given() {
		missing = append(missing, "--pod-cidr")
	}
	if c.Claims.ServiceCIDR == "" {
		missing = append(missing, "--service-cidr")
	}
	if len(missing) > 0 {
		log.Info("Not all networks of the own cluster are known: remote clusters can claim addresses in unknown ones (docs/claims.md)", "missing", strings.Join(missing, ", "))
	}
	return nil
}

// followClaims puts the policy file in force, and then follows its changes.
func followClaims(c config.Config, current *claims.Current, h cell.Health, jobs job.Group, log *slog.Logger) error {
	file := c.Claims.ClaimPolicyFile
	if file == "" {
		return nil
	}
	first, err := claims.Load(file) // before the agent reads any cluster
	if err != nil {
		return exit.Usagef("--claim-policy-file: %w", err)
	}
	current.Set(first)
	report := reporting(h.NewScope("claim-policy"), "the previous claim policy stays in use", "following "+file)
	runs(jobs, "claim-policy", func(ctx context.Context) error { return current.Follow(ctx, file, report, log) })
	return nil
}
