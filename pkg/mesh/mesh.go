// Package mesh is the whole reading side in one piece, for programs that embed it: the
// database with its tables, the clusters of a mesh directory that fill them, and the
// view from which everything is read.
//
//	m, err := mesh.New(mesh.Config{Directory: dir})
//	go m.Run(ctx)
//	err = m.WaitReady(ctx)
//	found := m.Lookup(addr)
//
// docs/embedding.md has the rest. Nothing is written to any kvstore.
//
// Concurrency: [Mesh.Run] is called once and owns all goroutines; it returns when they
// have ended, and nothing is withdrawn then. Everything else may be called by any
// goroutine, before, during and after it.
package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Config is the configuration of a mesh. Only Directory is needed; the zero value of every other field means the
// default of an agent.
type Config struct {
	// Directory is the mesh directory: one etcd client file for each remote cluster,
	// named as the cluster. It is watched, and waited for.
	Directory string
	// ClusterName and ClusterID are the own cluster's: "default" and 0, an observer of no
	// cluster, when they are empty. MaxConnectedClusters is 255 or 511, 0 means 255.
	ClusterName          string
	ClusterID            uint32
	MaxConnectedClusters uint32
	// SyncTimeout is how long readiness waits for clusters that do not answer; 0 means one minute.
	SyncTimeout time.Duration
	// CacheTTL is how long a cluster's service backends are used without contact; 0 is for ever.
	CacheTTL time.Duration
	// Policy decides about the service backends of clusters that go quiet; nil means [disconnect.DefaultPolicy].
	Policy *disconnect.Policy
	// Budgets are the maximum costs of each cluster; nil means [budget.Defaults]. Memory bounds the memory of the
	// entries of all clusters together; nil means no bound.
	Budgets *budget.Budgets
	Memory  *budget.Memory
	// Rules are about the addresses that remote clusters may have, Granted about the claims that they may make: all,
	// unless it is set.
	Rules   ipcache.Rules
	Granted *claims.Current
	// StateDir is where cluster IDs are remembered over restarts; empty is nowhere.
	StateDir string
	// KVStore are the options of the connections; nil means [etcd.DefaultOptions]. With
	// the own cluster's kvstore in them, that is read as well.
	KVStore *etcd.Options
	// Report is called after each look at the directory, with the error if it cannot be read.
	Report func(error)
	// Metrics takes the metrics; nil means none.
	Metrics prometheus.Registerer
	// Log is nil for silence.
	Log *slog.Logger
}

// withDefaults has no zero values but those that mean nothing.
func (c Config) withDefaults() Config {
	c.ClusterName = cmp.Or(c.ClusterName, wire.DefaultClusterName)
	c.MaxConnectedClusters = cmp.Or(c.MaxConnectedClusters, defaultMaxClusters)
	c.SyncTimeout = cmp.Or(c.SyncTimeout, defaultSyncTimeout)
	if c.Policy == nil {
		policy := disconnect.DefaultPolicy()
		c.Policy = &policy
	}
	if c.Budgets == nil {
		budgets := budget.Defaults()
		c.Budgets = &budgets
	}
	if c.KVStore == nil {
		options := etcd.DefaultOptions()
		c.KVStore = &options
	}
	c.Granted = cmp.Or(c.Granted, new(claims.Current))
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

const (
	defaultMaxClusters = 255
	defaultSyncTimeout = time.Minute
)

// validate reports every mistake, by field.
func (c Config) validate() error {
	var errs []error
	mistake := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("mesh: Config.%s: %w", field, err))
		}
	}
	if c.Directory == "" {
		mistake("Directory", errors.New("is missing"))
	}
	layout, err := wire.NewLayout(c.MaxConnectedClusters)
	mistake("MaxConnectedClusters", err)
	if err == nil && c.ClusterID > layout.Max() {
		mistake("ClusterID", fmt.Errorf("%d is greater than %d", c.ClusterID, layout.Max()))
	}
	mistake("ClusterName", wire.ValidateClusterName(c.ClusterName))
	if c.ClusterID != 0 && c.ClusterName == wire.DefaultClusterName {
		mistake("ClusterName", fmt.Errorf("a cluster with a ClusterID needs a name other than %q", wire.DefaultClusterName))
	}
	return errors.Join(errs...)
}

// own is the own cluster.
func (c Config) own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: c.ClusterName, ID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters}
}

// Clusters returns the clusters of the directory, which fill the view once they run. It takes the configuration as it
// is, without defaults. Only programs that assemble the parts themselves, like the agent, call it; all others call
// [New].
func (c Config) Clusters(to *clustermesh.View, metrics *store.Metrics) *clustermesh.Mesh {
	to.Granted = c.Granted
	return clustermesh.New(clustermesh.Params{
		Directory: c.Directory, Local: c.own(), StateDir: c.StateDir, Granted: c.Granted,
		SyncTimeout: c.SyncTimeout, CacheTTL: c.CacheTTL, Policy: c.Policy, ApplyPolicy: to.ApplyPolicy, Described: to.Described, Consumer: to.Consumer(metrics),
		KVStore: *c.KVStore, Budgets: *c.Budgets, Memory: c.Memory,
		Lists: ListsAtOnce(), Batches: store.NewTurns(runtime.GOMAXPROCS(0)),
		Report: c.Report, Log: c.Log,
	})
}

// ListsAtOnce bounds the lists that run at once in this process.
func ListsAtOnce() *store.Turns {
	return store.NewTurns(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
}

// Mesh is a view of the clusters of a directory, with the parts that fill it.
type Mesh struct {
	*view.View
	// Mesh are the clusters, Tables the tables that they fill.
	Mesh   *clustermesh.Mesh
	Tables *view.Tables

	watch *findings.Watch
}

// New returns a mesh that knows nothing until it runs. The error names every invalid field. A caller that does not
// run the mesh closes it.
func New(c Config) (*Mesh, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	tables, err := view.NewTables(statedb.New(), ipcache.New(c.Rules))
	if err != nil {
		return nil, err
	}
	filled, err := clustermesh.NewView(c.own(), tables.Tables)
	if err != nil {
		return nil, err
	}
	options := *c.KVStore
	options.Log = cmp.Or(options.Log, c.Log)
	c.KVStore = &options
	metrics := store.NewMetrics()
	if c.Metrics != nil {
		options.Metrics = etcd.NewMetrics(c.Metrics)
	}
	m := &Mesh{Mesh: c.Clusters(filled, metrics), Tables: tables}
	derived := findings.Sources{Tables: tables.Tables, Remotes: m.Mesh, Local: m.Mesh, Ignored: m.Mesh.Ignored, Log: c.Log}
	if m.watch, err = findings.NewWatch(tables.Findings, derived); err != nil {
		return nil, err
	}
	if m.View, err = view.New(view.Sources{Tables: tables, Remotes: m.Mesh, Own: m.Mesh, Readiness: m.Mesh}); err != nil {
		m.watch.Close()
		return nil, err
	}
	if c.Metrics == nil {
		return m, nil
	}
	if err := errors.Join(c.Metrics.Register(metrics), c.Metrics.Register(clustermesh.NewCollector(m.Mesh)), c.Metrics.Register(findings.NewCollector(tables.Findings)),
		c.Metrics.Register(view.NewCollector(m.View))); err != nil {
		m.Close()
		return nil, fmt.Errorf("mesh: Config.Metrics: %w", err)
	}
	return m, nil
}

// Run connects to the clusters and follows them until ctx ends. It returns the error of ctx, or the reason why it
// cannot continue. It closes the mesh: the known entries can still be read.
func (m *Mesh) Run(ctx context.Context) error {
	defer m.View.Close()
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{m.Mesh.Run, m.Tables.IPs.Run, m.watch.Run, m.View.Run} {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// Close releases the tables of a mesh that does not run.
func (m *Mesh) Close() {
	m.watch.Close()
	m.View.Close()
}
