package clustermesh

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Remotes is the set of remote clusters: one controller for each client file.
type Remotes struct {
	Params
	started time.Time
	dir     *directory
	pool    *pool
	local   *remotecluster.Cluster // the own cluster, read from its kvstore; nil without one
	loaded  loadedFile             // the client file of local
	ids     *ids
	policy  *policy        // nil without one
	changed waiting.Signal // something about the clusters has changed
	ready   atomic.Bool    // never becomes false again

	mu       sync.Mutex
	scanned  bool
	ignored  []Ignored
	members  map[string]*member
	unsynced map[string]bool // subjects that were not synced when the mesh became ready: see Missing
}

// member is one cluster. The fields are guarded by the mu of Remotes.
type member struct {
	cluster *remotecluster.Cluster
	file    File
	wanted  bool            // its file exists
	recheck bool            // the claims that it may make have changed
	regrant bool            // its last session was ended for a recheck
	changed chan struct{}   // closed and replaced when file or wanted changes
	broken  dirwatch.Broken // not zero: its file exists, but is no longer a valid client file
}

// New returns the clusters of a directory, which nothing watches until Run is called.
func New(p Params) *Remotes {
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	p.Timings = cmp.Or(p.Timings, remotecluster.DefaultTimings())
	p.Changes = cmp.Or(p.Changes, new(waiting.Counter))
	dir := newDirectory(p.Directory, p.Local.Name, p.Log)
	dir.Report = p.Report
	if p.Poll > 0 {
		dir.NoEvents, dir.Rescan = true, p.Poll
	}
	m := &Remotes{
		Params:  p,
		started: time.Now(),
		dir:     dir,
		pool:    newPool(p.Engine, p.Timings.RetryMin, p.Timings.RetryMax),
		ids:     newIDs(p.Local.Name, p.Local.ID, p.Granted, p.StateDir, p.Log),
		policy:  newPolicy(&p),
		changed: waiting.NewSignal(),
		members: make(map[string]*member),
	}
	if p.Own != nil {
		m.local = m.newLocal()
	}
	return m
}

// Run follows the directory and runs the clusters until ctx ends. It returns
// when all of them have stopped; nothing is withdrawn.
func (m *Remotes) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	m.pool.own(ctx, g)
	if m.local != nil {
		g.Go(func() error { return m.runLocal(ctx) })
	}
	if m.policy != nil {
		g.Go(func() error { return m.policy.run(ctx, m) })
	}
	if m.Granted != nil {
		g.Go(func() error { return m.followGrants(ctx) })
	}
	supervise := func(names []string) {
		for _, name := range names {
			g.Go(func() error { return m.supervise(ctx, name) })
		}
	}
	first := true
	g.Go(func() error {
		return m.dir.run(ctx, func(files map[string]File, ignored []Ignored, err error) {
			supervise(m.want(files, ignored, m.dir.Broken(), err == nil))
			if err == nil && first && m.Leftovers != nil {
				first = false
				g.Go(func() error { return m.takeOver(ctx, supervise) })
			}
		})
	})
	err := g.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// takeOver drains the entries that an earlier process has left of clusters without a client file.
func (m *Remotes) takeOver(ctx context.Context, supervise func([]string)) error {
	names, err := m.Leftovers(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	names = slices.DeleteFunc(names, func(name string) bool { _, known := m.members[name]; return known })
	for _, name := range names {
		m.members[name] = &member{cluster: m.newCluster(name, ""), changed: make(chan struct{})}
		m.Log.Info("Withdrawing the copy of a cluster without a client file", "cluster", name)
	}
	m.mu.Unlock()
	supervise(names)
	return nil
}

// want applies the contents of the directory, signals the clusters that changed, and returns
// the names of new clusters, which need a supervisor. read is true if the directory could be read.
func (m *Remotes) want(files map[string]File, ignored []Ignored, broken map[string]dirwatch.Broken, read bool) (added []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, b := range broken {
		if _, counts := files[name]; !counts {
			ignored = append(slices.Clip(ignored), Ignored{File: filepath.Join(m.Params.Directory, name), Reason: "it was a client file, and its cluster was withdrawn: " + b.Why})
		}
	}
	slices.SortFunc(ignored, func(a, b Ignored) int { return strings.Compare(a.File, b.File) })
	if !slices.Equal(m.ignored, ignored) {
		m.ignored = ignored
		m.bump()
	}
	m.scanned = m.scanned || read
	if read {
		m.ids.keep(func(name string) bool { _, there := files[name]; return there || m.members[name] != nil })
	}
	for name, file := range files {
		mb, known := m.members[name]
		if !known {
			mb = &member{cluster: m.newCluster(name, file.Path), changed: make(chan struct{})}
			m.members[name] = mb
			added = append(added, name)
		}
		if mb.wanted && mb.file == file {
			continue
		}
		mb.file, mb.wanted = file, true
		mb.signal()
		if known {
			m.Log.Info("The client file has changed", "cluster", name, "file", file.Path)
		}
	}
	for name, mb := range m.members {
		if mb.broken != broken[name] {
			mb.broken = broken[name]
			m.bump()
		}
		if _, there := files[name]; !there && mb.wanted {
			mb.wanted = false
			mb.signal()
		}
	}
	return added
}

// newCluster returns the controller of a remote cluster. Its status shows the client file before it runs.
func (m *Remotes) newCluster(name, file string) *remotecluster.Cluster {
	p := m.params(name)
	p.File, p.CacheTTL, p.Budget, p.Memory = file, m.CacheTTL, m.Budgets.Of(name), m.Memory.Account(name)
	return m.newController(p)
}

// newController returns a controller with its consumer.
func (m *Remotes) newController(p remotecluster.Params) *remotecluster.Cluster {
	p.Consumer = m.Consumer(Target{Name: p.Name, Own: p.Origin == remotecluster.OriginLocal, Changed: p.Changed, Log: p.Log})
	return remotecluster.New(p)
}

// params returns the parameters that all controllers have in common.
func (m *Remotes) params(name string) remotecluster.Params {
	layout, _ := wire.NewLayout(m.Params.Local.MaxConnectedClusters) // no error for a validated number; otherwise the zero layout
	return remotecluster.Params{
		Name:   name,
		Local:  m.Params.Local,
		Layout: layout,
		IDs:    m.ids,
		Connect: func(ctx context.Context, cfg *clientfile.Config) (remotecluster.Client, error) {
			h, err := m.pool.join(ctx, name, cfg)
			if err != nil {
				return nil, err
			}
			return h, nil
		},
		Lists:   m.Lists,
		Batches: m.Batches,
		Timings: m.Timings,
		Stretch: m.Engine.Stretch,
		Changed: m.bump,
		Log:     m.Log,
	}
}

func (mb *member) signal() {
	close(mb.changed)
	mb.changed = make(chan struct{})
}

// bump increases the revision, after a change of the clusters.
func (m *Remotes) bump() {
	m.Changes.Add()
	m.changed.Notify()
}

// supervise runs one cluster, again for each change of its file, until the file is removed (then the
// cluster is drained and forgotten) or ctx ends. A file that is restored meanwhile is used after the drain.
func (m *Remotes) supervise(ctx context.Context, name string) error {
	for {
		mb, file, wanted, changed := m.member(name)
		if wanted {
			if m.rechecks(mb) {
				mb.cluster.Recheck()
			}
			runUntil(ctx, mb.cluster, file.Path, func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-changed:
				}
			})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err := mb.cluster.Drain(ctx); err != nil {
			return err
		}
		if m.forget(name) {
			return nil
		}
	}
}

func (m *Remotes) member(name string) (*member, File, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mb := m.members[name]
	return mb, mb.file, mb.wanted, mb.changed
}

// runUntil runs the cluster with one file until changed returns or ctx ends.
func runUntil(ctx context.Context, c *remotecluster.Cluster, path string, changed func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer cancel()
		changed(ctx)
	})
	c.Run(ctx, path)
	cancel()
}

// forget removes a drained cluster, and reports whether it did. A cluster whose file
// exists again gets a new controller instead: the old one was drained for good.
func (m *Remotes) forget(name string) bool {
	defer m.policy.forget(name) // runs after mu is released
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pool.leave(name)
	m.bump()
	if mb := m.members[name]; mb.wanted {
		mb.cluster = m.newCluster(name, mb.file.Path)
		return false
	}
	delete(m.members, name)
	m.Memory.Close(name)
	return true
}

// followGrants starts new sessions of the clusters whose permitted claims have
// changed, so that all their entries are judged again, until ctx ends.
func (m *Remotes) followGrants(ctx context.Context) error {
	before, changed := m.Granted.Get()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		now, next := m.Granted.Get()
		m.mu.Lock()
		for name, mb := range m.members {
			if !now.Equal(before, name) || now.Pinned(mb.cluster.Status().ID) != before.Pinned(mb.cluster.Status().ID) {
				mb.recheck, mb.regrant = true, true
				mb.signal()
			}
		}
		m.mu.Unlock()
		before, changed = now, next
	}
}

// rechecks reports whether all entries of the cluster must be judged again. It resets this mark.
func (m *Remotes) rechecks(mb *member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	yes := mb.recheck
	mb.recheck, mb.regrant = false, yes
	return yes
}
