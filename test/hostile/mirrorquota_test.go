package hostile

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// ownWrites makes the own cluster write into its etcd until the end of the test; every write must succeed.
func (m *copies) ownWrites(tb testing.TB) {
	writes, failed := 0, false
	tb.Cleanup(func() { tb.Logf("%d writes of the own cluster", writes) })
	meanwhile(tb, 50*time.Millisecond, func() {
		if failed {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), *patience)
		defer cancel()
		if _, err := m.kv.Put(ctx, ownKey, "k8s:app=own;"); err != nil {
			failed = true
			tb.Errorf("the own cluster cannot write any more, after %d writes: %v", writes, err)
		}
		writes++
	})
}

// remote adds a hostile remote that breaks a rule, until the end of the test.
func (m *copies) remote(tb testing.TB, r *rule) (*cluster, *server) {
	tb.Helper()
	c, s := m.hostileCluster(tb)
	s.breaks(r)
	m.visits(tb, c, s)
	return c, s
}

// visits adds a remote until the end of the test.
func (m *copies) visits(tb testing.TB, c *cluster, s *server) {
	tb.Helper()
	m.join(c, s.endpoint())
	tb.Cleanup(func() { m.leave(c) })
}

// reaches waits until there are this many keys of the remote's addresses, and its status has one of these codes.
func (m *copies) reaches(tb testing.TB, c *cluster, keys int, want []codes.Code) {
	tb.Helper()
	m.until(tb, fmt.Sprintf("%d addresses of %s, and one of %v", keys, c.name, want), func() bool {
		st, _ := m.status(c.name)
		for _, code := range want {
			if st.Code == code && len(m.has(tb, c.name, wire.IPs)) == keys {
				return true
			}
		}
		return len(want) == 0 && len(m.has(tb, c.name, wire.IPs)) == keys
	})
}

// TestMirrorBudget: a remote that floods keys and events has at most its budget in the own etcd, at each revision. The
// own cluster continues to write, and the copy of the other remote is kept up to date.
func TestMirrorBudget(t *testing.T) {
	const keys, value = 200, 4 << 10
	m := newCopies(t, func(p *mirror.Params) {
		b := mirror.DefaultBudget()
		for r := range b.Resources {
			b.Resources[r] = budget.Share{Keys: keys, Bytes: 100 << 10}
		}
		b.List, b.Events, b.Value = 2*time.Second, 2000, value
		p.Budgets = budget.Budgets{Budget: b}
	})
	m.ownWrites(t)
	t.Run("keys that are there", func(t *testing.T) {
		c, s := m.hostileCluster(t)
		for n := range uint32(3 * keys) {
			kv := address(n, 0)
			s.put(map[string][]byte{string(kv.Key): kv.Value})
		}
		m.visits(t, c, s)
		m.reaches(t, c, keys, []codes.Code{codes.OverBudget})
		s.delete(string(address(0, 0).Key)) // another one may be copied in its place, or not
		m.until(t, "the deletion", func() bool {
			_, there := m.has(t, c.name, wire.IPs)[strings.TrimPrefix(string(address(0, 0).Key), wire.IPs.Prefix(c.name, false))]
			return !there
		})
	})
	t.Run("bytes", func(t *testing.T) {
		c, s := m.hostileCluster(t)
		for n := range 3 * keys {
			s.put(map[string][]byte{wire.Nodes.Key(c.name, false, fmt.Sprint("large", n)): []byte(strings.Repeat("x", value))})
		}
		m.visits(t, c, s)
		m.until(t, "the cluster to be over its budget", func() bool { st, _ := m.status(c.name); return st.Code == codes.OverBudget })
		if n := len(m.has(t, c.name, wire.Nodes)); n < 10 { // the judge checks the maximum
			t.Errorf("%d nodes are copied, there is room for more", n)
		}
	})
	for _, f := range []struct {
		rule *rule
		keys int
	}{{keyFlood(), keys}, {eventFlood(100), 100 + 60}, {eventFlood(0), keys}} {
		t.Run(f.rule.name, func(t *testing.T) {
			c, _ := m.remote(t, f.rule)
			m.reaches(t, c, f.keys, nil)
		})
		m.honest[0].show(0, 20+f.keys)
		m.copied(t, m.honest[0])
	}
}

// TestMirrorQuota: with large keys or events of a remote, the copy stops before the own etcd reaches its quota, and the
// own cluster continues to write.
func TestMirrorQuota(t *testing.T) {
	waittest.Long(t)
	const quota = 12 << 20
	for _, r := range []*rule{largeKeys(), largeEvents()} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			etcd := etcdtest.StartProcess(t, etcdtest.WithConfig(etcdserver.Config{QuotaBytes: quota}))
			m := newCopiesIn(t, etcd, func(p *mirror.Params) { p.Rate = syncstore.Rate{} })
			m.ownWrites(t)
			c, s := m.remote(t, r)
			m.until(t, "the copy to stop", func() bool {
				code, _ := m.mirror.Stopped()
				st, _ := m.status(c.name)
				return code == codes.OwnEtcdFull && s.broken.Load() > 0 && st.State != remotecluster.Ready
			})
			for range 3 { // after each answer about its size the mirror may write more
				before := m.writer.Status().Server.AskedAt
				m.until(t, "its size to be asked for", func() bool { return m.writer.Status().Server.AskedAt.After(before) })
				st, err := m.kv.Status(t.Context(), etcd.Endpoint())
				must(t, err)
				if st.DbSize >= quota {
					t.Errorf("the own etcd has %d bytes, its quota is %d", st.DbSize, quota)
				}
			}
			alarms, err := m.kv.AlarmList(t.Context())
			must(t, err)
			if len(alarms.Alarms) > 0 {
				t.Errorf("the own etcd has raised %v", alarms.Alarms)
			}
		})
	}
}

// junk is a value of 48 KiB that cannot be compressed.
func junk() []byte {
	var raw [36 << 10]byte
	_, _ = rand.Read(raw[:])
	return base64.StdEncoding.AppendEncode(nil, raw[:])
}

// largeKeys is a server with an endless list of large values.
func largeKeys() *rule {
	value := junk()
	return withoutEnd("large keys", "cilium/state/nodes/", 0, func(prefix string, n int64) *mvccpb.KeyValue {
		kv := key(fmt.Sprintf("%s~%015d", prefix, n))
		kv.Value = value
		return kv
	})
}

// largeEvents is a server that changes ten large values all the time: few keys, and an endless history.
func largeEvents() *rule {
	value := junk()
	return &rule{name: "large events", flood: func(ctx context.Context, s *server, w *watched, send func(any) error) error {
		if !strings.HasPrefix(string(w.key), "cilium/state/nodes/") {
			return nil
		}
		for rev := w.next; ctx.Err() == nil; rev += 10 {
			a := &pb.WatchResponse{Header: s.header()}
			a.Header.Revision = rev + 10
			for n := range int64(10) {
				v := fmt.Appendf(nil, "%d %s", rev+n, value)
				a.Events = append(a.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{
					Key: fmt.Appendf(nil, "%slarge%d", w.key, n), Value: v, CreateRevision: 2, ModRevision: rev + n, Version: 2,
				}})
			}
			if err := send(a); err != nil {
				return err
			}
		}
		return nil
	}}
}

// TestMirrorConfigurations: remotes claim our own ID, the ID of another cluster, or none, in turn and in conflict with
// each other. The own etcd never has one of these configurations.
func TestMirrorConfigurations(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	m := newCopies(t)
	claim := func(c *cluster, id uint32) { c.write(map[string][]byte{wire.ClusterConfigKey(c.name): configOf(id)}) }
	refused := []codes.Code{codes.ClusterIDTaken, codes.ConfigurationRefused, codes.ClusterIDRemembered}
	resolves := func(c *cluster, id uint32) {
		t.Helper()
		m.until(t, fmt.Sprintf("%s with the ID %d to be refused", c.name, id), func() bool {
			st, _ := m.status(c.name)
			for _, code := range refused {
				if st.Code == code && st.State == remotecluster.Failed {
					return true
				}
			}
			return false
		})
	}
	bad := []uint32{own().ID, m.honest[0].id, 0, 256, 4000, 1 << 31}
	var all []*cluster
	with := func(id uint32) *cluster {
		t.Helper()
		c, s := m.hostileCluster(t)
		claim(c, id)
		m.join(c, s.endpoint())
		return c
	}
	for _, id := range bad {
		c := with(id)
		resolves(c, id)
		all = append(all, c)
	}
	for n := range 200 { // faster than a reader can follow
		for i, c := range all {
			claim(c, []uint32{bad[(n+i)%len(bad)], 77, uint32(100 + i)}[n%3]) //nolint:gosec // small
		}
	}
	for i, c := range all {
		claim(c, bad[i])
		resolves(c, bad[i])
	}
	for i := range 3 { // when the owner of an ID changes to an ID that is not allowed, the next cluster can have its first one
		id := uint32(50 + i) //nolint:gosec // small
		first := with(id)
		m.copied(t, first)
		claim(first, m.honest[0].id)
		resolves(first, m.honest[0].id)
		m.copied(t, with(id))
	}
	for i, c := range all { // and none of the bad IDs has a lasting effect on its cluster
		claim(c, uint32(100+i)) //nolint:gosec // small
	}
	for _, c := range all {
		m.copied(t, c)
	}
	m.honest[0].show(0, 9)
	m.copied(t, m.honest[0])
}

// configOf is a valid configuration with this ID.
func configOf(id uint32) []byte {
	return wire.ClusterConfig{ID: id, Capabilities: wire.Capabilities{MaxConnectedClusters: 255, SyncedCanaries: true}}.Encode()
}
