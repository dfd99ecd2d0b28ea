package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mesh is a view of the clusters of a directory, with the parts that fill it.
type Mesh struct {
	*view.View
	// Remotes has the clusters; nil if the process reads them in another way (Parts.Reader), or not at all.
	Remotes *clustermesh.Remotes
	// Tables are the tables that are filled, and Ingest writes the objects of the clusters to them.
	Tables *view.Tables
	Ingest *clustermesh.Ingest
	// Findings derives conflicts and events.
	Findings *findings.Watch
}

// Parts are what a process adds to a mesh: the agent's own parts, and what it does differently in a mode. The zero value
// is a mesh that stands for itself.
type Parts struct {
	// Tables are those to be filled; nil: new ones ([NewTables]).
	Tables *view.Tables
	// Reader describes the clusters if something else than the mesh reads them, for example a mirror, or if none are
	// read ([clustermesh.None]); nil: the mesh reads them.
	Reader clustermesh.Reader
	// Reading has the metrics of reading; nil: new ones.
	Reading *store.Metrics
	// Reads reports which resources are read of a cluster, the own one or a remote; nil: all.
	Reads func(own bool, r wire.Resource) bool
	// Ready reports whether the process is ready; nil: it is when the clusters are ([clustermesh.Reader]).
	Ready func() (bool, map[string]string)
	// Leads reports whether this process leads those that do the same work; nil: it does not need to.
	Leads func() bool
	// Described is the description of the own cluster; nil: it has none.
	Described *local.Cluster
	// LogLevel is the level of the log, whose changes are events; nil: it is fixed. FindingsLog has a line for each
	// event; nil: the log of the mesh.
	LogLevel    *logging.Level
	FindingsLog *slog.Logger
	// Scopes has the health of the process, and Bounds counts the failures of its parts; either may be nil.
	Scopes *health.Registry
	Bounds *boundary.Boundaries
}

// NewTables returns empty tables in a database of their own, or in this one.
func NewTables(db *statedb.DB, rules ipcache.Rules) (*view.Tables, error) {
	return view.NewTables(cmp.Or(db, statedb.New()), ipcache.New(rules))
}

// New returns a mesh that is empty until it runs. The error names every invalid field. A caller that does not
// run the mesh must close it.
func New(c Config) (*Mesh, error) { return Assemble(c.withDefaults(), Parts{}) }

// Assemble is [New] with the parts of a process. It takes the configuration as it is: zero values are not replaced by
// defaults. Log is required, and Budgets where the mesh reads the clusters.
func Assemble(c Config, p Parts) (m *Mesh, err error) {
	if err := c.validate(p.Reader == nil); err != nil {
		return nil, err
	}
	m = &Mesh{Tables: p.Tables}
	if m.Tables == nil {
		if m.Tables, err = NewTables(nil, c.Rules); err != nil {
			return nil, err
		}
	}
	if m.Ingest, err = clustermesh.NewIngest(c.own(), m.Tables.Tables); err != nil {
		return nil, err
	}
	m.Ingest.Granted, m.Ingest.Reads = c.Granted, p.Reads
	if p.Described != nil {
		m.Ingest.Described = describedBy(p.Described)
	}
	if p.Bounds == nil {
		p.Bounds = boundary.New(c.Log)
	}
	reading, reader := cmp.Or(p.Reading, store.NewMetrics()), p.Reader
	if reader == nil {
		if m.Remotes, err = c.clusters(m.Ingest, reading); err != nil {
			return nil, err
		}
		reader = m.Remotes
	}
	if p.Ready != nil {
		reader = apartReady{reader, p.Ready}
	}
	m.Findings, err = findings.NewWatch(m.Tables.Findings, findings.Params{
		Tables: m.Tables.Tables, Reader: reader, Leads: p.Leads, Described: p.Described, LogLevel: p.LogLevel, Log: cmp.Or(p.FindingsLog, c.Log), Boundary: p.Bounds.Part("findings"),
	})
	if err != nil {
		return nil, err
	}
	m.View, err = view.New(view.Params{Tables: m.Tables, Reader: reader, Scopes: p.Scopes, Boundary: p.Bounds.Part("changes")})
	if err != nil {
		m.Findings.Close()
		return nil, err
	}
	if err := m.register(c, reading); err != nil {
		m.Close()
		return nil, fmt.Errorf("mesh: Config.Metrics: %w", err)
	}
	return m, nil
}

// apartReady is a reader in a process that is ready for another reason than its clusters.
type apartReady struct {
	clustermesh.Reader
	ready func() (bool, map[string]string)
}

// Ready implements [clustermesh.Reader].
func (r apartReady) Ready() (bool, map[string]string) { return r.ready() }

// describedBy returns the sync status of services and slices that come from the description.
func describedBy(from *local.Cluster) func(wire.Resource) store.Status {
	return func(r wire.Resource) store.Status {
		st := from.State()
		count := from.Services.Len()
		if r == wire.EndpointSlices {
			count = from.EndpointSlices.Len()
		}
		return store.Status{Count: count, FollowStatus: store.FollowStatus{
			Synced: st.Listed, Followed: st.Listed, Following: st.Err == nil, AsOf: st.AsOf, Every: st.Every, Err: st.Err,
		}}
	}
}

// clusters returns the clusters of the directory, which fill the tables once they run.
func (c Config) clusters(to *clustermesh.Ingest, reading *store.Metrics) (*clustermesh.Remotes, error) {
	engine := c.Engine
	if engine == nil {
		var err error
		if engine, err = c.defaultEngine(); err != nil {
			return nil, err
		}
	}
	return clustermesh.New(clustermesh.Params{
		Directory: c.Directory, Local: c.own(), StateDir: c.StateDir, Granted: c.Granted,
		SyncTimeout: c.SyncTimeout, CacheTTL: c.CacheTTL, Policy: c.Policy, ApplyPolicy: to.ApplyPolicy, Described: to.Described, Consumer: to.Consumer(reading),
		Engine: engine, Own: c.Own, Poll: c.Poll, Budgets: *c.Budgets, Memory: c.Memory,
		Lists: ListsAtOnce(), Batches: store.NewTurns(runtime.GOMAXPROCS(0)),
		Report: c.Report, Log: c.Log,
	}), nil
}

// register registers the metrics of the parts.
func (m *Mesh) register(c Config, reading *store.Metrics) error {
	if c.Metrics == nil {
		return nil
	}
	all := []prometheus.Collector{reading, findings.NewCollector(m.Tables.Findings), view.NewCollector(m.View)}
	if m.Remotes != nil {
		all = append(all, clustermesh.NewCollector(m.Remotes))
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, c.Metrics.Register(one))
	}
	return errors.Join(errs...)
}

// Missing returns the missing parts, by cluster, of the clusters without which the mesh became ready.
func (m *Mesh) Missing() map[string]string {
	if m.Remotes == nil {
		return nil
	}
	return m.Remotes.Missing()
}

// Run connects to the clusters and follows them until ctx ends. It returns the error of ctx, or the reason why it
// cannot continue. It closes the mesh: the known entries can still be read.
func (m *Mesh) Run(ctx context.Context) error {
	defer m.View.Close()
	parts := []func(context.Context) error{m.Tables.IPs.Run, m.Findings.Run, m.View.Run}
	if m.Remotes != nil {
		parts = append(parts, m.Remotes.Run)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range parts {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// Close releases the tables of a mesh that does not run.
func (m *Mesh) Close() {
	m.Findings.Close()
	m.View.Close()
}
