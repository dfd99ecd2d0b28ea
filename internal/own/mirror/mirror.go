package mirror

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/leading"
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
	*leading.Leader[term]
	opened int // the connections of the terms that are over; the lock of the leader guards it
}

// New returns a mirror that does nothing yet. The error is about the own cluster.
func New(p Params) (*Mirror, error) {
	if err := p.Local.ValidateStrict(); err != nil {
		return nil, err
	}
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	p.Changes = cmp.Or(p.Changes, new(waiting.Counter))
	m := &Mirror{Params: p}
	m.Leader = leading.New(leading.Params[term]{
		Writer: p.Writer, Lock: wire.KVStoreMeshLockPath, Begin: m.newTerm, Turn: m.turn, Complete: p.Copied, Log: p.Log,
		Run:     func(ctx context.Context, t *term) error { return t.run(ctx) },
		Unready: (*term).unready,
		Standby: "another mirror leads, or none yet",
	})
	return m, nil
}

// turn adds up what counts over all terms.
func (m *Mirror) turn(ended *term) {
	if ended != nil {
		_, _, opened := ended.mesh.Sessions()
		m.opened += opened
	}
	m.Changes.Add()
}

// Clusters describes the remote clusters as they are copied; none while another mirror leads.
func (m *Mirror) Clusters() []remotecluster.Status {
	t := m.Term()
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
	if t := m.Term(); t != nil {
		return t.mesh.Ignored()
	}
	return nil
}

// Announced describes the clusters that the directory has and the controllers do not
// know yet; none while another mirror leads.
func (m *Mirror) Announced() []remotecluster.Status {
	if t := m.Term(); t != nil {
		return t.mesh.Announced()
	}
	return nil
}

// Find returns the state of a key of a remote cluster; nothing while another mirror leads.
func (m *Mirror) Find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	if t := m.Term(); t != nil {
		return t.mesh.Find(cluster, r, name)
	}
	return store.Found{}, false
}

// Local implements [clustermesh.Reader]: a mirror does not read its own cluster.
func (m *Mirror) Local() (remotecluster.Status, bool) { return remotecluster.Status{}, false }

// Revision grows with every change of a cluster's state, and with every term.
func (m *Mirror) Revision() uint64 { return m.Changes.Count() }

// Changed implements [clustermesh.Reader].
func (m *Mirror) Changed(known uint64) <-chan struct{} { return m.Changes.Changed(known) }

// Sessions counts the connections with the remote clusters, as [clustermesh.Remotes.Sessions] does.
func (m *Mirror) Sessions() (open, users, opened int) {
	m.With(func(t *term) {
		if t != nil {
			open, users, opened = t.mesh.Sessions()
		}
		opened += m.opened
	})
	return open, users, opened
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
