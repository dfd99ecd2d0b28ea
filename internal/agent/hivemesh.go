package agent

import (
	"context"
	"errors"
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
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// warnOfBudgets logs the clusters that have a budget and no client file: their names may be misspelled.
func warnOfBudgets(b budget.Budgets, directory string, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(b.Clusters)) {
		if _, err := os.Stat(filepath.Join(directory, name)); errors.Is(err, fs.ErrNotExist) {
			log.Warn("--remote-budget names a cluster without a client file; check the name", "cluster", name, "directory", directory)
		}
	}
}

// role is the part of a mode in the mesh: how it reads clusters, and who leads.
type role struct {
	// module is the module whose parts read the clusters, in the log and in the health.
	module string
	// reader reads the clusters instead of the mesh, or none; nil: the mesh reads them.
	reader clustermesh.Reader
	// reads reports which resources are read; nil: all. ready reports whether the process is ready; nil: it is when its
	// clusters are.
	reads func(own bool, r wire.Resource) bool
	ready func() (bool, map[string]string)
	// leader is nil in a mode without leader election.
	leader leader
}

// clustermeshModule and findingsModule are the names of these modules in the log and in the health.
const (
	clustermeshModule = "clustermesh"
	findingsModule    = "findings"
	moduleKey         = "module" // of log lines, as hive writes it
)

func meshCell() cell.Cell {
	return cell.Module(
		clustermeshModule, "The mesh directory and one controller per remote cluster",
		cell.Provide(func() role { return role{module: clustermeshModule} }),
		cell.Invoke(tellUnknownNetworks, followClaims),
		cell.Invoke(func(jobs job.Group, m *mesh.Mesh) { runs(jobs, "mesh", m.Remotes.Run) }),
	)
}

// runs adds a job that runs until the program stops.
func runs(jobs job.Group, name string, run func(context.Context) error) {
	startJob(jobs, name, "running", run)
}

// startJob does the same as runs, with another message in the health.
func startJob(jobs job.Group, name, message string, run func(context.Context) error) {
	jobs.Add(job.OneShot(name, func(ctx context.Context, h cell.Health) error {
		h.OK(message)
		return run(ctx)
	}, job.WithShutdown()))
}

// meshParams are the dependencies of the mesh.
type meshParams struct {
	cell.In

	Config  config.Config
	Role    role
	Tables  *view.Tables
	Granted *claims.Current
	From    *local.Cluster `optional:"true"`
	Size    clusterSize
	Etcd    *etcd.Metrics
	Reading *store.Metrics
	Metrics prometheus.Registerer
	Scopes  *health.Registry
	Bounds  *boundary.Boundaries
	Level   *logging.Level
	Log     *slog.Logger
}

func newMesh(p meshParams) (*mesh.Mesh, error) {
	parts := mesh.Parts{
		Tables: p.Tables, Reader: p.Role.reader, Reading: p.Reading, Reads: p.Role.reads, Ready: p.Role.ready,
		LogLevel: p.Level, FindingsLog: p.Log.With(moduleKey, findingsModule), Scopes: p.Scopes, Bounds: p.Bounds,
	}
	if p.Role.leader != nil {
		parts.Leads = p.Role.leader.Leads
	}
	if p.Config.Local.Given() && p.From != nil {
		parts.Described = p.From
	}
	return mesh.Assemble(meshConfig(p), parts)
}

// meshConfig is the configuration of the mesh. One that reads no clusters itself needs less of it.
func meshConfig(p meshParams) mesh.Config {
	c := p.Config
	m := mesh.Config{
		ClusterName: c.ClusterName, ClusterID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters,
		Granted: p.Granted, Metrics: p.Metrics, Log: p.Log.With(moduleKey, p.Role.module),
	}
	if p.Role.reader != nil {
		return m
	}
	warnOfBudgets(c.RemoteBudget, c.ClustermeshConfig, m.Log)
	opts := c.KVStoreOptions()
	opts.Metrics, opts.ClusterSize, opts.Log = p.Etcd, p.Size, m.Log
	m.Engine = opts
	if opts.HasLocal() {
		m.Own = &clustermesh.OwnKVStore{Path: opts.ConfigPath, Load: opts.Config}
	}
	m.Directory, m.StateDir = c.ClustermeshConfig, c.Claims.StateDir
	m.SyncTimeout, m.CacheTTL, m.Policy = c.ClustermeshSyncTimeout, c.ClustermeshCacheTTL, &c.DisconnectPolicy
	m.Budgets, m.Memory = &c.RemoteBudget, budget.NewMemory(c.RemoteMemoryLimit())
	m.Report = reportDirectory(p.Scopes.NewScope(p.Role.module+".directory"), c.ClustermeshConfig)
	return m
}

// reportDirectory returns a function that reports in the health whether the mesh directory can be read.
func reportDirectory(h cell.Health, path string) func(error) {
	return reporting(h, "waiting for the mesh directory; the agent keeps its data", "watching "+path)
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

// tellUnknownNetworks logs the flags of own networks that this agent does not know, and that remote clusters can
// therefore claim. Where the agent reads its own nodes, these announce the pod networks.
func tellUnknownNetworks(c config.Config, log *slog.Logger) {
	var missing []string
	if c.Claims.PodCIDR == "" && !c.KVStoreOpt.HasLocal() && !c.Local.Given() {
		missing = append(missing, "--pod-cidr")
	}
	if c.Claims.ServiceCIDR == "" {
		missing = append(missing, "--service-cidr")
	}
	if len(missing) > 0 {
		log.Info("Not all networks of the own cluster are known: remote clusters can claim addresses in unknown ones (docs/claims.md)", "missing", strings.Join(missing, ", "))
	}
}

// followClaims puts the policy file in force, and then follows its changes.
func followClaims(c config.Config, current *claims.Current, h cell.Health, jobs job.Group, log *slog.Logger) {
	file := c.Claims.ClaimPolicyFile
	if file == "" {
		return
	}
	current.Set(c.ClaimPolicy) // before the agent reads any cluster
	report := reporting(h.NewScope("claim-policy"), "the previous claim policy stays in use", "following "+file)
	runs(jobs, "claim-policy", func(ctx context.Context) error { return current.Follow(ctx, file, report, log) })
}
