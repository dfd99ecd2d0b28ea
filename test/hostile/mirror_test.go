package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// copies is a running mirror, with its own etcd and an honest remote.
type copies struct {
	remotes
	kv     *clientv3.Client // of the own etcd
	writer kvstore.Writer
	mirror *mirror.Mirror

	most budget.Share // the limit for each resource of each remote, 0 for no bound

	mu      sync.Mutex
	owners  []string              // guarded by mu; names of the remotes
	wrong   []string              // guarded by mu; forbidden writes
	sizes   map[string]int64      // guarded by mu; of the present values, by key
	shares  map[part]budget.Share // guarded by mu; the sum of a resource of a remote
	configs map[string]uint32     // guarded by mu; IDs of the present configurations, by cluster
}

// part is a resource of a remote.
type part struct {
	cluster  string
	resource wire.Resource
}

// ownKey is a key that the own cluster writes, next to the mirror's.
const ownKey = "cilium/state/identities/v1/id/1000"

// newCopies runs a mirror and waits until the honest cluster is copied. From then on every write into the own etcd is
// checked.
func newCopies(tb testing.TB, change ...func(*mirror.Params)) *copies {
	tb.Helper()
	return newCopiesIn(tb, etcdtest.StartProcess(tb), change...)
}

// newCopiesIn is newCopies with a given own etcd.
func newCopiesIn(tb testing.TB, server *etcdtest.Process, change ...func(*mirror.Params)) *copies {
	tb.Helper()
	m := &copies{
		remotes: remotes{tb: tb, dir: tb.TempDir()}, kv: server.Client(tb),
		sizes: make(map[string]int64), shares: make(map[part]budget.Share), configs: make(map[string]uint32),
	}
	o := impatient()
	o.LockTTL, o.Timings.StatusInterval, o.Timings.StatusRetry = 2*time.Second, time.Second, time.Second
	d := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(server.Endpoint()) }, o)
	m.writer = d
	p := mirror.DefaultParams()
	p.Directory, p.Local, p.Writer, p.Engine, p.Timings = m.dir, own(), d, impatient(), hasty()
	p.DrainDelay, p.Metrics, p.Writing = 50*time.Millisecond, store.NewMetrics(), syncstore.NewMetrics()
	p.Lists = places()
	p.Log = slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&p)
	}
	m.most = p.Budgets.Share(wire.IPs)
	var err error
	m.mirror, err = mirror.New(p)
	must(tb, err)
	m.of = m.mirror
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- m.judge(ctx) }()
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- m.mirror.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				tb.Errorf("ended: %v", err)
			}
		}
		for _, text := range m.wrong {
			tb.Error(text)
		}
	})
	c, endpoint := m.honestCluster("c1", 1)
	m.join(c, endpoint)
	m.copied(tb, c)
	return m
}

func (m *copies) join(c *cluster, endpoint string) {
	m.tb.Helper()
	m.mu.Lock()
	m.owners = append(m.owners, c.name)
	m.mu.Unlock()
	m.remotes.join(c, endpoint)
}

// has returns the contents of a cluster's resource in the own etcd, by name.
func (m *copies) has(tb testing.TB, cluster string, r wire.Resource) map[string]string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	prefix := r.Prefix(cluster, true)
	resp, err := m.kv.Get(ctx, prefix, clientv3.WithPrefix())
	must(tb, err)
	all := make(map[string]string)
	for _, kv := range resp.Kvs {
		all[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
	}
	return all
}

// copied waits until the own etcd has the numbers of a cluster's nodes.
func (m *copies) copied(tb testing.TB, c *cluster) {
	tb.Helper()
	m.until(tb, c.name+" to be copied", func() bool {
		nodes := m.has(tb, c.name, wire.Nodes)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(nodes) != len(c.objects) {
			return false
		}
		for i, n := range c.objects {
			if !strings.Contains(nodes[fmt.Sprint("node", i)], fmt.Sprintf(`"boot%d"`, n)) {
				return false
			}
		}
		return true
	})
}

// TestMirrorRules: with each broken rule of a remote, no key is ever written outside the prefixes of the remotes, and
// the copy of the other remote is kept up to date.
func TestMirrorRules(t *testing.T) {
	waittest.Long(t)
	m := newCopies(t)
	heap := watchHeap(t)
	tried := append(rules(), endless(0), endless(600*time.Millisecond))
	inGroups(t, tried, func(t *testing.T, r *rule) {
		c, s := m.hostileCluster(t)
		s.breaks(r)
		m.visits(t, c, s)
		writing(t, c)
		if r.flood == nil {
			t.Parallel()
		}
		m.until(t, "the server to break its rule", func() bool { return s.broken.Load() > 0 })
		m.until(t, "a session that came to something", func() bool {
			st, _ := m.status(c.name)
			return st.Failures > 0 || st.Connected || strings.HasPrefix(r.name, "silence") || strings.HasPrefix(r.name, "connection")
		})
		for _, res := range wire.Resources() {
			for name := range m.has(t, c.name, res) {
				if !s.everWritten(res.Key(c.name, false, name)) && !strings.HasPrefix(r.name, "endless") && !strings.HasPrefix(r.name, "list: ") {
					t.Errorf("the copy has %q of the %s, which the remote never had", name, res)
				}
			}
		}
	})
	for n := range 3 {
		m.honest[0].show(n, 7)
		m.copied(t, m.honest[0])
	}
	heap.check(t)
}

// everWritten reports whether a key was ever written.
func (c *core) everWritten(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, written := c.versions[key]
	return written
}

// TestMirrorKeys: a remote that may only write in its own etcd chooses the names of its keys. They are copied as they
// are, or not at all; none is written outside of the remote's prefixes.
func TestMirrorKeys(t *testing.T) {
	t.Parallel()
	m := newCopies(t)
	c, s := m.hostileCluster(t)
	names := []string{
		"", "/", "//", "..", "../../c1/node1", "/../x", ".", "a/../../b", "\x00", "a\x00b", "\xff\xfe", "\u009b\u202e", " ", "%2e%2e%2f",
		strings.Repeat("k", 4<<10), strings.Repeat("d/", 1000), "node1/", "c1/node1", "*", "{}", "cilium/cache/nodes/v1/c1/node1",
	}
	for _, r := range wire.Resources() {
		for _, name := range names {
			s.put(map[string][]byte{r.Prefix(c.name, false) + name: []byte("x")})
		}
	}
	// Also keys outside of its prefixes, for clusters whose names are prefixes or extensions of its own, or are those
	// of other clusters.
	for _, other := range []string{"", "c1", "h", "h1-x", "h10", own().Name} {
		for _, r := range wire.Resources() {
			s.put(map[string][]byte{
				r.Prefix(other, false) + "x": []byte("x"), r.Prefix(other, true) + "x": []byte("x"),
				wire.SyncedKey(other, r, true): []byte("x"), wire.ClusterConfigKey(other): []byte("x"),
			})
		}
	}
	m.join(c, s.endpoint())
	m.fairCopied(t, c, len(names))
	for _, r := range wire.Resources() {
		for name := range m.has(t, c.name, r) {
			if !s.everWritten(r.Key(c.name, false, name)) && !s.everWritten(r.Prefix(c.name, false)+name) {
				t.Errorf("the copy has %q of the %s, which the remote never had", name, r)
			}
		}
	}
	m.honest[0].show(0, 9)
	m.copied(t, m.honest[0])
}

// fairCopied waits until the valid nodes of a cluster are copied.
func (m *copies) fairCopied(tb testing.TB, c *cluster, strange int) {
	tb.Helper()
	m.until(tb, c.name+" to be copied", func() bool {
		nodes := m.has(tb, c.name, wire.Nodes)
		for i := range c.objects {
			if _, there := nodes[fmt.Sprint("node", i)]; !there {
				return false
			}
		}
		return len(nodes) <= len(c.objects)+strange
	})
}
