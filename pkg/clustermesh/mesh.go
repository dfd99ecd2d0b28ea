package clustermesh

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ListsPerCore is how many lists are best run at once for each core: one keeps
// it busy with decoding while another waits, and more of them only hold more
// pages in memory.
const ListsPerCore = 2

// Params is what a Mesh is made of.
type Params struct {
	// Directory is the mesh directory: one client file per remote cluster.
	Directory string
	// Local is the own cluster.
	Local wire.ClusterInfo
	// SyncTimeout is how long readiness waits for clusters that do not answer.
	SyncTimeout time.Duration
	// Equip gives the controller of a cluster its sources, and what else becomes
	// of what the cluster says: see [View.Equip].
	Equip func(*remotecluster.Params)
	// Leftovers names the clusters of which something is there before any of them
	// runs. It is asked once the directory has been read, a look that fails is none:
	// those without a file are drained. Its error ends Run. Nil is none.
	Leftovers func(ctx context.Context) ([]string, error)
	// KVStore are the options of the sessions. They may name the kvstore of the
	// own cluster, which is then read like the others and counts as local.
	KVStore kvstore.Options
	// Granted is what remote clusters may claim; nil is everything. A change of it
	// is applied to what is there.
	Granted *claims.Current
	// StateDir is where the cluster IDs are remembered over restarts; empty is
	// nowhere.
	StateDir string
	// CacheTTL is how long a remote cluster's service backends are used without
	// contact; 0 is for ever.
	CacheTTL time.Duration
	// Policy is what becomes of the service backends of remote clusters that go
	// quiet; nil is nothing.
	Policy *disconnect.Policy
	// Stand makes it so: see [View.Stand]. It is needed with a Policy.
	Stand func(cluster string, to disconnect.State)
	// Lists and Batches bound how many lists run, and how many batches of events are
	// applied, at once; nil is no bound.
	Lists, Batches *store.Turns
	// Budgets is what remote clusters may cost; the zero value is no bound.
	Budgets budget.Budgets
	// Memory bounds what the entries of all remote clusters take together; nil does not.
	Memory *budget.Memory
	// Timings are those of the controllers; the zero value is the default.
	Timings remotecluster.Timings
	// Report is told whether the directory can be read, again and again; nil is
	// nobody.
	Report func(error)
	Log    *slog.Logger // nil is silence
}

// Mesh is the set of remote clusters: one controller for each client file.
type Mesh struct {
	Params
	started  time.Time
	dir      *directory
	pool     *pool
	local    *remotecluster.Cluster // the own cluster, read from its kvstore; nil without one
	loaded   loadedFile             // its client file
	ids      *ids
	policy   *policy       // nil without one
	stirred  chan struct{} // has one when something about the clusters has changed
	revision atomic.Uint64
	ready    atomic.Bool // sticky

	mu      sync.Mutex
	scanned bool
	ignored []Ignored
	members map[string]*member
	without map[string]bool // what the mesh became ready without: see Missing
}

// member is one cluster. The fields are guarded by the mesh's mu.
type member struct {
	cluster *remotecluster.Cluster
	file    File
	wanted  bool          // its file is there
	recheck bool          // what it may claim has changed
	regrant bool          // that is why its session was ended last
	changed chan struct{} // closed and replaced when file or wanted changes
}

// New returns a mesh that watches nothing yet.
func New(p Params) *Mesh {
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	if p.Timings == (remotecluster.Timings{}) {
		p.Timings = remotecluster.DefaultTimings()
	}
	dir := newDirectory(p.Directory, p.Local.Name, p.Log)
	dir.Report = p.Report
	m := &Mesh{
		Params:  p,
		started: time.Now(),
		dir:     dir,
		pool:    newPool(p.KVStore, p.Timings.RetryMin, p.Timings.RetryMax),
		ids:     newIDs(p.Local.Name, p.Local.ID, p.Granted, p.StateDir, p.Log),
		policy:  newPolicy(&p),
		stirred: make(chan struct{}, 1),
		members: make(map[string]*member),
	}
	if p.KVStore.HasLocal() {
		m.local = m.newLocal()
	}
	return m
}

// Run follows the directory and runs the clusters until ctx ends. It returns
// when all of them have stopped; nothing is withdrawn.
func (m *Mesh) Run(ctx context.Context) error {
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
			supervise(m.want(files, ignored, err == nil))
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

// takeOver drains what an earlier process has left of clusters that have no file
// any more.
func (m *Mesh) takeOver(ctx context.Context, supervise func([]string)) error {
	names, err := m.Leftovers(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	names = slices.DeleteFunc(names, func(name string) bool { _, known := m.members[name]; return known })
	for _, name := range names {
		m.members[name] = &member{cluster: m.newCluster(name), changed: make(chan struct{})}
		m.Log.Info("A cluster without a client file was left behind, withdrawing it", "cluster", name)
	}
	m.mu.Unlock()
	supervise(names)
	return nil
}

// want takes what the directory asks for, tells the clusters, and returns the
// names of those that need a supervisor. read tells whether the directory could be.
func (m *Mesh) want(files map[string]File, ignored []Ignored, read bool) (added []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report(ignored)
	m.scanned = m.scanned || read
	if read {
		m.ids.keep(func(name string) bool { _, there := files[name]; return there || m.members[name] != nil })
	}
	for name, file := range files {
		mb, known := m.members[name]
		if !known {
			mb = &member{cluster: m.newCluster(name), changed: make(chan struct{})}
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
		if _, there := files[name]; !there && mb.wanted {
			mb.wanted = false
			mb.signal()
		}
	}
	return added
}

// newCluster returns the controller of a remote cluster.
func (m *Mesh) newCluster(name string) *remotecluster.Cluster {
	p := m.params(name)
	p.CacheTTL, p.Budget, p.Memory = m.CacheTTL, m.Budgets.Of(name), m.Memory.Account(name)
	m.Equip(&p)
	return remotecluster.New(p)
}

// params are what all controllers have in common.
func (m *Mesh) params(name string) remotecluster.Params {
	return remotecluster.Params{
		Name:  name,
		Local: m.Params.Local,
		IDs:   m.ids,
		Connect: func(ctx context.Context, cfg *kvstore.Config) (remotecluster.Client, error) {
			h, err := m.pool.join(ctx, name, cfg)
			if err != nil {
				return nil, err
			}
			return h, nil
		},
		Lists:   m.Lists,
		Batches: m.Batches,
		Timings: m.Timings,
		Stretch: m.KVStore.Stretch,
		Changed: m.bump,
		Log:     m.Log,
	}
}

func (mb *member) signal() {
	close(mb.changed)
	mb.changed = make(chan struct{})
}

// report keeps which files are unusable; mu is held.
func (m *Mesh) report(ignored []Ignored) {
	if !slices.Equal(m.ignored, ignored) {
		m.ignored = ignored
		m.bump()
	}
}

// bump moves the revision on: something about the clusters changed.
func (m *Mesh) bump() {
	m.revision.Add(1)
	select {
	case m.stirred <- struct{}{}:
	default: // the policy looks already
	}
}

// supervise runs one cluster: again for each change of its file, until the
// file is gone (then it is drained and forgotten) or ctx ends. A file that
// comes back meanwhile is taken up after the drain.
func (m *Mesh) supervise(ctx context.Context, name string) error {
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

func (m *Mesh) member(name string) (*member, File, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mb := m.members[name]
	return mb, mb.file, mb.wanted, mb.changed
}

// runUntil runs the cluster with one file until changed returns or ctx ends.
func runUntil(ctx context.Context, c *remotecluster.Cluster, path string, changed func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		defer cancel()
		changed(ctx)
		return nil
	})
	c.Run(ctx, path)
	cancel()
	_ = g.Wait() // it returns no error
}

// forget removes a drained cluster. One that is wanted again begins anew, with
// another controller: the one before has withdrawn itself for good.
func (m *Mesh) forget(name string) bool {
	defer m.policy.forget(name) // with mu released
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pool.leave(name)
	m.bump()
	if mb := m.members[name]; mb.wanted {
		mb.cluster = m.newCluster(name)
		return false
	}
	delete(m.members, name)
	m.Memory.Close(name)
	return true
}

// Clusters describes every cluster at this moment, sorted by name.
func (m *Mesh) Clusters() []remotecluster.Status {
	all := m.statuses()
	for i := range all {
		all[i].Outlook = m.policy.outlook(all[i].Name)
	}
	return all
}

// statuses is what the controllers say.
func (m *Mesh) statuses() []remotecluster.Status {
	m.mu.Lock()
	clusters := make(map[*remotecluster.Cluster]member, len(m.members))
	for _, mb := range m.members {
		clusters[mb.cluster] = *mb
	}
	m.mu.Unlock()
	all := make([]remotecluster.Status, 0, len(clusters))
	for c, mb := range clusters {
		st := c.Status()
		if st.LastLoss == "" && mb.regrant {
			st.LastLoss = "the claim policy file has changed: everything that it says is judged again"
		}
		if mb.wanted && st.State == remotecluster.Removing {
			st.Message = "its file was gone and is back; it is taken up again when the entries of before are withdrawn"
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find tells what is known of one key of a cluster, the own one included, by its
// name below the resource's prefix; false for nothing.
func (m *Mesh) Find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	m.mu.Lock()
	mb := m.members[cluster]
	m.mu.Unlock()
	switch {
	case mb != nil:
		return mb.cluster.Find(r, name)
	case m.local != nil && cluster == m.Params.Local.Name:
		return m.local.Find(r, name)
	}
	return store.Found{}, false
}

// Announced describes the clusters whose client files are in the directory at this
// moment otherwise than the controllers know: new ones, and those whose file was
// changed. It reads the directory; when that cannot be read, there are none.
func (m *Mesh) Announced() []remotecluster.Status {
	l, err := scan(m.Directory, m.Params.Local.Name)
	if err != nil {
		return nil
	}
	var all []remotecluster.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		file, mb := l.files[name], m.members[name]
		text := "its client file was just put there, and is about to be read"
		switch {
		case mb != nil && mb.wanted && (file.unreadable || mb.file == file):
			continue
		case mb != nil:
			text = "its client file was just changed, and is about to be read"
		}
		all = append(all, remotecluster.Status{
			Name: name, ConfigFile: file.Path, State: remotecluster.Connecting, Code: codes.NotConnectedYet, Message: text,
		})
	}
	return all
}

// Sessions counts the connections, the clusters that use them, and all the
// connections that were ever opened.
func (m *Mesh) Sessions() (open, users, opened int) { return m.pool.counts() }

// Ignored lists the entries of the directory that look like client files but
// cannot be used, and why.
func (m *Mesh) Ignored() []Ignored {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ignored)
}

// Revision grows with every change of a cluster's state; counts and freshness
// move without it.
func (m *Mesh) Revision() uint64 { return m.revision.Load() }

// Ready tells whether the view may be used: every cluster was synced once, or
// the sync timeout has passed since the start. It never may before the mesh
// directory was read once, whatever the timeout: without it an empty view would
// pass for that of a mesh without clusters. Once true it stays true. The reasons
// say by cluster what is waited for.
func (m *Mesh) Ready() (ok bool, reasons map[string]string) {
	if m.ready.Load() {
		return true, nil
	}
	if why := m.Unread(); why != "" {
		return false, map[string]string{Directory: why}
	}
	reasons = m.unready()
	if len(reasons) > 0 && time.Since(m.started) < m.SyncTimeout {
		return false, reasons
	}
	if !m.ready.Swap(true) && len(reasons) > 0 {
		m.readyWithout(reasons)
		m.Log.Warn("Ready without some clusters: they did not answer within the sync timeout",
			"clusters", slices.Sorted(maps.Keys(reasons)), "timeout", m.SyncTimeout)
	}
	return true, nil
}

// Directory is the subject of [Mesh.Unread] among the reasons of [Mesh.Ready]. It is
// no name of a cluster.
const Directory = "mesh directory"

// Unread says why nothing is known of the mesh directory yet; empty once it was
// read.
func (m *Mesh) Unread() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scanned {
		return ""
	}
	text := m.Params.Directory + " was not read yet"
	for _, i := range m.ignored {
		if i.Directory {
			text += ": " + i.Reason
		}
	}
	return text
}

func (m *Mesh) unready() map[string]string {
	reasons := make(map[string]string)
	note := func(subject string, c remotecluster.Status) {
		if missing := unsynced(c); len(missing) > 0 {
			reasons[subject] = fmt.Sprintf("not synced: %s: %s", strings.Join(missing, ", "), c.Message)
		}
	}
	for _, c := range m.Clusters() {
		note(c.Name, c)
	}
	if c, has := m.Local(); has {
		note("local kvstore", c)
	}
	return reasons
}

// unsynced lists the resources that have not been listed completely yet and
// are needed, sorted.
func unsynced(c remotecluster.Status) (missing []string) {
	for r, s := range c.Sources {
		if !s.Synced && !s.Late {
			missing = append(missing, string(r))
		}
	}
	slices.Sort(missing)
	return missing
}
