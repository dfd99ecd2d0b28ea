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
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/store"
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
	// Engine opens the sessions with the kvstores; nil means etcd's, with the default options of package etcd.
	Engine clustermesh.Engine
	// Own is the kvstore of the own cluster, which is read as well; nil means that it is not read.
	Own *clustermesh.OwnKVStore
	// Poll is the interval between two readings of the directory; 0 means that file system events start them.
	Poll time.Duration
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
	c.Granted = cmp.Or(c.Granted, new(claims.Current))
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

const (
	defaultMaxClusters = 255
	defaultSyncTimeout = time.Minute
)

// validate returns an error that names every invalid field. A mesh that reads no clusters needs no directory.
func (c Config) validate(reads bool) error {
	var errs []error
	mistake := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("mesh: Config.%s: %w", field, err))
		}
	}
	if reads && c.Directory == "" {
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

// ListsAtOnce returns the bound on the lists that run at the same time in this process.
func ListsAtOnce() *store.Turns {
	return store.NewTurns(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
}
