// Package mesh combines all parts that read a mesh, for programs that embed it: the
// database with its tables, the clusters of a mesh directory that fill the tables, and
// the view that returns the data.
//
//	m, err := mesh.New(mesh.Config{Directory: dir})
//	go m.Run(ctx)
//	err = m.WaitReady(ctx)
//	found := m.Lookup(addr)
//
// See docs/embedding.md for the details. Nothing is written to any kvstore.
//
// Concurrency: [Mesh.Run] is called once and owns all goroutines. It returns when they
// have ended; it withdraws nothing. All other methods may be called by any goroutine,
// before, during and after Run.
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
	// Directory is the mesh directory: one etcd client file for each remote cluster, with
	// the name of the cluster. It is watched. It may be created after the start.
	Directory string
	// ClusterName and ClusterID are those of the own cluster. Their defaults are "default"
	// and 0: an observer that belongs to no cluster. MaxConnectedClusters is 255 or 511; 0 means 255.
	ClusterName          string
	ClusterID            uint32
	MaxConnectedClusters uint32
	// SyncTimeout is how long readiness waits for clusters that do not answer; 0 means one minute.
	SyncTimeout time.Duration
	// CacheTTL is how long a cluster's service backends are used without contact; 0 means without limit.
	CacheTTL time.Duration
	// Policy decides about the service backends of unreachable clusters; nil means [disconnect.DefaultPolicy].
	Policy *disconnect.Policy
	// Budgets are the maximum costs of each cluster; nil means [budget.Defaults]. Memory bounds the memory of the
	// entries of all clusters together; nil means no bound.
	Budgets *budget.Budgets
	Memory  *budget.Memory
	// Rules restrict the addresses of remote clusters. Granted is what remote clusters may claim; nil means
	// everything.
	Rules   ipcache.Rules
	Granted *claims.Current
	// StateDir is the directory where cluster IDs are saved for a restart; empty means that they are not saved.
	StateDir string
	// KVStore are the options of the connections; nil means [etcd.DefaultOptions]. If
	// they name the own cluster's kvstore, it is read as well.
	KVStore *etcd.Options
	// Report is called after each read of the directory, with the error if the read failed.
	Report func(error)
	// Metrics takes the metrics; nil means none.
	Metrics prometheus.Registerer
	// Log may be nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns the configuration with the defaults filled in. A field that is still zero has no default.
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

// validate returns an error that names every invalid field.
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

// own returns the own cluster.
func (c Config) own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: c.ClusterName, ID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters}
}

// Clusters returns the clusters of the directory, which fill the view once they run. It uses the configuration as it
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

// ListsAtOnce returns the bound on the lists that run at the same time in this process.
func ListsAtOnce() *store.Turns {
	return store.NewTurns(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
}

// Mesh is a view of the clusters of a directory, with the parts that fill it.
type Mesh struct {
	*view.View
	// Mesh has the clusters, Tables the tables that they fill.
	Mesh   *clustermesh.Mesh
	Tables *view.Tables

	watch *findings.Watch
}

// New returns a mesh that is empty until it runs. The error names every invalid field. A caller that does not
// run the mesh must close it.
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
