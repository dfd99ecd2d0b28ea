package mirror

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Params is what a Mirror is made of.
type Params struct {
	// Params are those of the remote clusters and of the sessions with them; SyncTimeout is how
	// long readiness waits for all, and of Granted only which clusters are admitted, and their IDs,
	// concern a mirror: it decodes no entries. Consumer, Leftovers and Policy are not used.
	clustermesh.Params
	// Writer writes to the own cluster's kvstore.
	Writer kvstore.Writer
	// ReadyTimeout is how long readiness waits for a cluster that cannot be connected.
	ReadyTimeout time.Duration
	// DrainDelay is the pause between the withdrawal of a removed cluster's
	// configuration and that of its keys: its readers drain it themselves then.
	DrainDelay time.Duration
	// KeepRemoved leaves the entries of removed clusters in the cache. They end with this mirror's leases.
	KeepRemoved bool
	// Rate is how fast the copy of one remote cluster may be written.
	Rate syncstore.Rate
	// Room is how full our own etcd may become by copying.
	Room Room
	// Copied is called when every cluster that could be connected was copied; nil is not.
	Copied func()
	// Metrics are those of the watches of the remotes, Writing those of the writes to the cache; both may be nil.
	Metrics *store.Metrics
	Writing *syncstore.Metrics
}

// DefaultParams are the waits (wire.md §3.6, §3.7) and bounds of production.
func DefaultParams() Params {
	return Params{
		Params:       clustermesh.Params{SyncTimeout: 10 * time.Minute, Budgets: budget.Budgets{Budget: DefaultBudget()}},
		ReadyTimeout: 15 * time.Second, DrainDelay: 3 * time.Minute, Rate: DefaultRate(), Room: DefaultRoom(),
	}
}

// Mirror copies the remote clusters while it leads.
type Mirror struct {
	Params
	started time.Time

	mu       sync.Mutex
	term     *term  // guarded by mu; nil while another process leads, or none
	revision uint64 // guarded by mu; of the terms that are over
	opened   int    // guarded by mu; the connections of these terms
	ready    bool   // guarded by mu; sticky
}

// New returns a mirror that does nothing yet. The error is about the own cluster.
func New(p Params) (*Mirror, error) {
	if err := p.Local.ValidateStrict(); err != nil {
		return nil, err
	}
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	return &Mirror{Params: p, started: time.Now()}, nil
}

// Run copies whenever it leads, until ctx ends. Nothing is withdrawn then.
func (m *Mirror) Run(ctx context.Context) error {
	return kvstore.LeadAgain(ctx, m.Writer, wire.KVStoreMeshLockPath, m.Log, m.lead)
}

// lead is one term.
func (m *Mirror) lead(ctx context.Context, lock *kvstore.Lock) error {
	t := newTerm(m, lock)
	m.enter(t)
	defer m.enter(nil)
	return t.run(ctx)
}

// enter changes the term.
func (m *Mirror) enter(t *term) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term != nil {
		m.revision += m.term.mesh.Revision()
		_, _, opened := m.term.mesh.Sessions()
		m.opened += opened
	}
	m.revision++
	m.term = t
}

func (m *Mirror) current() *term {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term
}

// Leads reports whether this mirror is the one that copies.
func (m *Mirror) Leads() bool { return m.current() != nil }

// Bootstrap is how long it took in this term until everything was copied that can
// be connected; 0 before that, and while another mirror leads.
func (m *Mirror) Bootstrap() time.Duration {
	if t := m.current(); t != nil {
		return time.Duration(t.bootstrap.Load())
	}
	return 0
}

// Clusters describes the remote clusters as they are copied; none while another mirror leads.
func (m *Mirror) Clusters() []remotecluster.Status {
	t := m.current()
	if t == nil {
		return nil
	}
	all := t.mesh.Clusters()
	for i := range all {
		if all[i].State == remotecluster.Removing && !m.KeepRemoved {
			all[i].Message += fmt.Sprintf("; of the copy first the configuration, and after a pause of %s (--drain-delay) the rest", m.DrainDelay)
		}
	}
	return all
}

// Ignored lists the entries of the directory that cannot be used; none while another mirror leads.
func (m *Mirror) Ignored() []clustermesh.Ignored {
	if t := m.current(); t != nil {
		return t.mesh.Ignored()
	}
	return nil
}

// Announced describes the clusters that the directory has and the controllers do not
// know yet; none while another mirror leads.
func (m *Mirror) Announced() []remotecluster.Status {
	if t := m.current(); t != nil {
		return t.mesh.Announced()
	}
	return nil
}

// Find returns the state of a key of a remote cluster; nothing while another mirror leads.
func (m *Mirror) Find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	if t := m.current(); t != nil {
		return t.mesh.Find(cluster, r, name)
	}
	return store.Found{}, false
}

// Local implements [clustermesh.Reader]: a mirror does not read its own cluster.
func (m *Mirror) Local() (remotecluster.Status, bool) { return remotecluster.Status{}, false }

// Revision grows with every change of a cluster's state, and with every term.
func (m *Mirror) Revision() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term != nil {
		return m.revision + m.term.mesh.Revision()
	}
	return m.revision
}

// Sessions counts the connections with the remote clusters, as [clustermesh.Mesh.Sessions] does.
func (m *Mirror) Sessions() (open, users, opened int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term == nil {
		return 0, 0, m.opened
	}
	open, users, opened = m.term.mesh.Sessions()
	return open, users, m.opened + opened
}

// standbyAfter is when one who waits to lead is ready to (wire.md §3.7).
const standbyAfter = 10 * time.Second

// Ready reports whether the copies may be used: every cluster that can be connected was copied once, or another mirror
// leads, or the time for that has passed. A leader is not ready before the mesh directory was read once, however long
// that takes: until then the clusters to copy are not known. Once true it stays true. The reasons give for each cluster
// the missing part.
func (m *Mirror) Ready() (bool, map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		if reasons := m.unready(); len(reasons) > 0 {
			return false, reasons
		}
		m.ready = true
	}
	return true, nil
}

// unready says what readiness waits for. The lock is held.
func (m *Mirror) unready() map[string]string {
	switch st := m.Writer.Status(); {
	case m.term != nil:
		return m.term.unready()
	case !st.Connected:
		return map[string]string{"own kvstore": "not connected: " + cmp.Or(st.LastError, "connecting")}
	case time.Since(m.started) >= standbyAfter:
		return nil
	}
	return map[string]string{"election": fmt.Sprintf("another mirror leads, or none yet: ready as a standby after %s", standbyAfter)}
}

const mib = 1 << 20

// DefaultBudget is what a remote cluster without settings of its own may cost. A copy lies in our own etcd, whose quota
// is 2 GiB unless it was raised, together with old revisions and all other copies: its bytes are fewer than an agent's.
// The nodes and addresses of a cluster with 5,000 and 250,000 of them fit four times, as with an agent; [Room] bounds
// the total of all clusters.
func DefaultBudget() budget.Budget {
	b := budget.Default()
	for r, share := range b.Resources {
		share.Bytes = r.Describe().CopyBytes
		b.Resources[r] = share
	}
	return b
}

// DefaultRate is how fast the copy of one remote cluster may be written: a large one at once, and then more than a
// large one changes. Entries that a remote writes repeatedly take space as well, until our own etcd is compacted, every
// 5 minutes or so.
func DefaultRate() syncstore.Rate {
	return syncstore.Rate{Writes: 1000, WritesAtOnce: 500_000, Bytes: 1 * mib, BytesAtOnce: 256 * mib}
}

// collector shows how full our own etcd is, as metrics. A standby knows the size as well, and copies nothing.
type collector struct {
	mirror                      *Mirror
	stopped, size, inUse, quota *prometheus.Desc
}

// NewCollector returns the metrics of the mirror, to be registered once.
func NewCollector(m *Mirror) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("mesh_agent_mirror_"+name, help, nil, nil)
	}
	return &collector{
		mirror:  m,
		stopped: desc("stopped", "1 while nothing but deletions is copied, because the own etcd is nearly full."),
		size:    desc("own_etcd_size_bytes", "Size of the own etcd's file, which it compares with its quota."),
		inUse:   desc("own_etcd_in_use_bytes", "Space in use in the own etcd's file, with old revisions."),
		quota:   desc("own_etcd_quota_bytes", "The quota of the own etcd: as it says, or else as --own-kvstore-quota does."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.stopped, c.size, c.inUse, c.quota} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	stopped := int64(0)
	if code, _ := c.mirror.Stopped(); code == codes.OwnEtcdFull {
		stopped = 1
	}
	gauge(c.stopped, stopped)
	s := c.mirror.Writer.Status().Server
	if s.AskedAt.IsZero() {
		return
	}
	gauge(c.size, s.DBSize)
	gauge(c.inUse, s.DBInUse)
	gauge(c.quota, c.mirror.Room.quotaOf(s))
}
