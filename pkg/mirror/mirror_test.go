package mirror

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/operate/operatetest"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// history are the events of the own etcd from a revision on, up to now.
func (w *world) history(from int64) []*clientv3.Event {
	w.t.Helper()
	ctx := waittest.Context(w.t)
	c := w.etcd.Client(w.t)
	head, err := c.Get(ctx, "x")
	must(w.t, err)
	var all []*clientv3.Event
	for resp := range c.Watch(ctx, "cilium/", clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithProgressNotify()) {
		must(w.t, resp.Err())
		all = append(all, resp.Events...)
		if len(all) > 0 && all[len(all)-1].Kv.ModRevision >= head.Header.Revision {
			break
		}
	}
	return all
}

func (w *world) revision() int64 {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), "x")
	must(w.t, err)
	return resp.Header.Revision
}

// marked writes a key into the own etcd, so that a history has an end.
func (w *world) marked() {
	w.t.Helper()
	_, err := w.etcd.Client(w.t).Put(w.t.Context(), "cilium/end", "")
	must(w.t, err)
}

// since is what happened to the copies from a revision on.
func (w *world) since(from int64) (puts, deletes []*clientv3.Event) {
	w.t.Helper()
	w.marked()
	for _, e := range w.history(from) {
		key := string(e.Kv.Key)
		switch {
		case !strings.HasPrefix(key, wire.CachePrefix+"/") && !strings.HasPrefix(key, wire.ClusterConfigPrefix+"/"):
		case e.Type == clientv3.EventTypeDelete:
			deletes = append(deletes, e)
		default:
			puts = append(puts, e)
		}
	}
	return puts, deletes
}

// TestTheCacheIsWhatTheRemotesHave: key for key and byte for byte, from the first
// copy on, through changes, and until a cluster's file is gone. One change of a
// remote costs one write.
func TestTheCacheIsWhatTheRemotesHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.remote("a", 1), w.remote("b", 2)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	w.join(b)
	w.equal(a, b)
	waittest.Until(t, "readiness", func() bool { ready, _ := m.Ready(); return ready })

	from := w.revision() + 1
	key := slices.Sorted(maps.Keys(a.Contents()))[0]
	must(t, a.Put(t.Context(), wire.Nodes.Key("a", false, "new"), []byte(`{"any":"value"}`)))
	waittest.Until(t, "a new key", func() bool { return w.copied()[wire.Nodes.Key("a", true, "new")] == `{"any":"value"}` })
	must(t, a.Delete(t.Context(), wire.Nodes.Key("a", false, "new")))
	waittest.Until(t, "its deletion", func() bool { _, there := w.copied()[wire.Nodes.Key("a", true, "new")]; return !there })
	if puts, deletes := w.since(from); len(puts) != 1 || len(deletes) != 1 {
		t.Errorf("a key that came and went cost %d puts and %d deletions (the first key is %s)", len(puts), len(deletes), key)
	}

	from = w.revision() + 1
	must(t, os.Remove(filepath.Join(w.dir, "a")))
	w.equal(b)
	order := map[string]int{}
	for i, e := range w.history(from) {
		if e.Type == clientv3.EventTypeDelete {
			for kind, prefix := range map[string]string{"config": wire.ClusterConfigPrefix, "canaries": wire.SyncedPrefix, "keys": wire.CachePrefix} {
				if strings.HasPrefix(string(e.Kv.Key), prefix+"/") {
					if _, seen := order[kind]; !seen {
						order[kind] = i
					}
				}
			}
		}
	}
	if len(order) != 3 || order["config"] > order["canaries"] || order["canaries"] > order["keys"] {
		t.Errorf("a removed cluster was withdrawn in this order: %v", order)
	}
}

// TestTheCanaryIsLast: of each family it is written after all its keys, and the
// configuration before any of them.
func TestTheCanaryIsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	config := w.cache(wire.ClusterConfigKey("a"))[wire.ClusterConfigKey("a")]
	for _, r := range wire.Resources() {
		canary := w.cache(wire.SyncedKey("a", r, true))[wire.SyncedKey("a", r, true)]
		if _, err := time.Parse(time.RFC3339, canary.value); err != nil {
			t.Errorf("the canary of %s: %v", r, err)
		}
		for key, e := range w.cache(r.Prefix("a", true)) {
			if e.changed >= canary.created || e.created <= config.created || e.lease == 0 {
				t.Errorf("%s: created at %d, changed at %d, lease %x; the configuration was at %d, the canary at %d",
					key, e.created, e.changed, e.lease, config.created, canary.created)
			}
		}
	}
}

// TestWhatBecomesOfTheRemote: it dies, comes back, is compacted, is replaced with
// the same data or with other, and at last the copy is what it has. Nothing is
// deleted from the copy that is still there, and nothing written that is the same.
func TestWhatBecomesOfTheRemote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	ctx := t.Context()
	extra := wire.Nodes.Key("a", false, "extra")
	n := 0
	// change changes one key of the remote.
	change := func() {
		n++
		must(t, a.Put(ctx, extra, fmt.Appendf(nil, `{"n":%d}`, n)))
	}
	copied := func() {
		t.Helper()
		want := fmt.Sprintf(`{"n":%d}`, n)
		waittest.Until(t, "change "+want, func() bool { return w.copied()[wire.Nodes.Key("a", true, "extra")] == want })
	}
	change()
	copied()
	for what, happens := range map[string]func(){
		"restarts":     func() { must(t, a.Restart(ctx)) },
		"is compacted": func() { _, err := a.Compact(ctx); must(t, err) },
		"is replaced":  func() { must(t, a.Replace(ctx)) },
	} {
		from := w.revision() + 1
		happens()
		change()
		copied()
		if puts, deletes := w.since(from); len(puts) != 1 || len(deletes) != 0 {
			t.Errorf("a remote that %s cost %d puts and %d deletions", what, len(puts), len(deletes))
		}
	}
	must(t, a.ReplaceEmpty(ctx))
	_, err := a.Mend(ctx)
	must(t, err)
	change()
	copied()
	waittest.Until(t, "the copy to follow", func() bool { return len(w.cache(wire.CachePrefix+"/ip/v1/a/")) == a.Cluster().Addresses })
}

// TestWhatBecomesOfTheCopy: keys that somebody deletes or changes come back, all of
// them when the own etcd is emptied, and then the canaries last.
func TestWhatBecomesOfTheCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	c := w.etcd.Client(t)
	_, err := c.Delete(t.Context(), wire.CachePrefix+"/nodes/", clientv3.WithPrefix())
	must(t, err)
	_, err = c.Put(t.Context(), wire.Services.Key("a", true, "nobody/knows"), "x")
	must(t, err)
	_, err = c.Delete(t.Context(), wire.ClusterConfigKey("a"))
	must(t, err)
	w.equal(a)

	w.etcd.RestartEmpty(t)
	w.equal(a)
	for _, r := range wire.Resources() {
		canary := w.cache(wire.SyncedKey("a", r, true))[wire.SyncedKey("a", r, true)]
		for key, e := range w.cache(r.Prefix("a", true)) {
			if e.created >= canary.created {
				t.Errorf("%s came back at %d, its canary at %d", key, e.created, canary.created)
			}
		}
	}
}

// reader follows a prefix of the own etcd as an agent does, until the end of the
// test. It counts what it knows, and what has changed since it knew everything.
func (w *world) reader(prefix string) (known, changes *atomic.Int64) {
	w.t.Helper()
	known, changes = new(atomic.Int64), new(atomic.Int64)
	opts := etcd.DefaultOptions()
	opts.QPS = 0
	as := operatetest.As(w.t, w.etcd, "local-own")
	d := etcd.NewDurable(func() (*clientfile.Config, error) { return as, nil }, opts)
	var all bool
	watch := store.NewWatch(store.Kind[store.Raw]{
		Resource: wire.IPs,
		Decode: func(wire.Expect) store.Decode[store.Raw] {
			return func(_ string, value []byte) (*store.Raw, error) {
				v := store.Raw(bytes.Clone(value))
				return &v, nil
			}
		},
		Apply: func(c []store.Change[store.Raw]) {
			if all {
				changes.Add(int64(len(c)))
			} else {
				known.Add(int64(len(c)))
			}
		},
		Listed: func() { all = true },
	}, w.log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- watch.Run(ctx, store.Session{Client: d, Prefix: prefix}) }()
	w.t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
	return known, changes
}

// TestAnotherMirrorTakesOver: of two one leads. When it is gone the other one goes
// on: it writes each key at most once, to tie it to its own lease, and deletes none.
func TestAnotherMirrorTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	first := w.mirror()
	waittest.Until(t, "the first to lead", first.Leads)
	w.equal(a)
	second := w.mirror()
	defer second.stop()
	seen, changes := w.reader(wire.IPs.Prefix("a", true))
	waittest.Until(t, "a reader of the copy", func() bool { return int(seen.Load()) == a.Cluster().Addresses })
	before := w.cache(wire.CachePrefix + "/")
	from := w.revision() + 1
	if second.Leads() {
		t.Error("two lead")
	}
	first.stop()
	waittest.Until(t, "the second to lead", second.Leads)
	waittest.Until(t, "all keys to be the second's", func() bool {
		for key, e := range w.cache(wire.CachePrefix + "/") {
			if e.lease == before[key].lease {
				return false
			}
		}
		return true
	})
	puts, deletes := w.since(from)
	written := map[string]int{}
	for _, e := range puts {
		if key := string(e.Kv.Key); strings.HasPrefix(key, wire.CachePrefix) {
			written[key]++
		}
	}
	for key, n := range written {
		if n != 1 {
			t.Errorf("%s was written %d times", key, n)
		}
	}
	if len(written) != len(before) || len(deletes) != 0 {
		t.Errorf("%d of %d keys were written, %d deleted", len(written), len(before), len(deletes))
	}
	w.equal(a)

	must(t, a.Put(t.Context(), wire.IPs.Key("a", false, "192.0.2.1"), []byte("new")))
	waittest.Until(t, "a change for the reader", func() bool { return changes.Load() > 0 })
	if n := changes.Load(); n != 1 {
		t.Errorf("whoever reads the copy has seen %d changes, and there was one", n)
	}
}

// TestWhoLosesTheLockStopsWriting: the lock's key is deleted behind its holder, as
// the end of its lease would do it while the process is frozen; the other mirror
// leads, and nothing is written by both.
func TestWhoLosesTheLockStopsWriting(t *testing.T) {
	t.Parallel()
	w, a, first := copying(t)
	defer first.stop()
	second := w.mirror()
	defer second.stop()
	c := w.etcd.Client(t)
	lock, err := c.Get(t.Context(), wire.KVStoreMeshLockPath+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	must(t, err)
	_, err = c.Delete(t.Context(), string(lock.Kvs[0].Key))
	must(t, err)
	for n := range 50 { // changes all the while
		must(t, a.Put(t.Context(), wire.Nodes.Key("a", false, "extra"), fmt.Append(nil, n)))
	}
	waittest.Until(t, "the second to lead", second.Leads)
	waittest.Until(t, "the last change", func() bool { return w.copied()[wire.Nodes.Key("a", true, "extra")] == "49" })
	w.equal(a)
	// Whoever writes a key ties it to a lease of his; in no key's history is one of
	// the first's after one of the second's.
	w.marked()
	leases := map[int64]bool{} // of the first: those that keys had before the second led
	second2 := map[string]bool{}
	ledBy := int64(0)
	for _, e := range w.history(1) {
		key := string(e.Kv.Key)
		if strings.HasPrefix(key, wire.KVStoreMeshLockPath) && e.Type == clientv3.EventTypeDelete && ledBy == 0 {
			ledBy = e.Kv.ModRevision
		}
		if !strings.HasPrefix(key, wire.CachePrefix) || e.Type == clientv3.EventTypeDelete {
			continue
		}
		if ledBy == 0 {
			leases[e.Kv.Lease] = true
		} else if leases[e.Kv.Lease] {
			t.Errorf("%s was written by the first at %d, after it had lost the lock at %d", key, e.Kv.ModRevision, ledBy)
		} else {
			second2[key] = true
		}
	}
	if len(second2) == 0 {
		t.Error("the second has written nothing")
	}
}

// TestAClusterThatComesBackWhileItIsRemoved is copied again.
func TestAClusterThatComesBackWhileItIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror(func(p *Params) { p.DrainDelay = time.Second })
	defer m.stop()
	w.equal(a)
	before := w.cache(wire.CachePrefix + "/")
	file := filepath.Join(w.dir, "a")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.Remove(file))
	waittest.Until(t, "the configuration to go", func() bool { _, there := w.copied()[wire.ClusterConfigKey("a")]; return !there })
	must(t, os.WriteFile(file, text, 0o600))
	waittest.Until(t, "the keys to go and to come back", func() bool {
		now := w.cache(wire.CachePrefix + "/")
		for key, e := range before {
			if now[key].created <= e.created {
				return false
			}
		}
		return true
	})
	w.equal(a)
}

// TestWhatIsLeftOfARemovedCluster: the lead changes before its removal has come to
// the end, and nobody has its file any more. The next leader goes on; clusters that
// are there, and what operates the own one has written, stay.
func TestWhatIsLeftOfARemovedCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.remote("a", 1), w.remote("b", 2)
	w.join(a)
	w.join(b)
	m := w.mirror()
	defer m.stop()
	w.equal(a, b)
	c := w.etcd.Client(t)
	own := wire.SyncedKey("own", wire.Services, false)
	_, err := c.Put(t.Context(), own, "now")
	must(t, err)
	// Of one cluster a family is left, with its configuration; of another one a canary.
	_, err = c.Put(t.Context(), wire.IPs.Key("gone", true, "10.0.0.1"), "x")
	must(t, err)
	_, err = c.Put(t.Context(), wire.SyncedKey("half", wire.IPs, true), "x")
	must(t, err)
	_, err = c.Put(t.Context(), wire.ClusterConfigKey("gone"), "{}")
	must(t, err)
	lock, err := c.Get(t.Context(), wire.KVStoreMeshLockPath+"/", clientv3.WithPrefix())
	must(t, err)
	_, err = c.Delete(t.Context(), string(lock.Kvs[0].Key))
	must(t, err)
	waittest.Until(t, "what is left to go", func() bool {
		now := w.copied()
		_, gone := now[wire.IPs.Key("gone", true, "10.0.0.1")]
		_, half := now[wire.SyncedKey("half", wire.IPs, true)]
		_, config := now[wire.ClusterConfigKey("gone")]
		return !gone && !half && !config
	})
	if _, there := w.copied()[own]; !there {
		t.Error("a canary of the own cluster went")
	}
	_, err = c.Delete(t.Context(), own)
	must(t, err)
	w.equal(a, b)
}

// TestAMirrorWithoutAKVStoreIsNotReady, however long it waits to lead.
func TestAMirrorWithoutAKVStoreIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.etcd.Kill(t)
	m := w.mirror()
	defer m.stop()
	m.started = m.started.Add(-time.Hour)
	waittest.Until(t, "the reason", func() bool {
		ready, reasons := m.Ready()
		return !ready && strings.Contains(reasons["own kvstore"], "refused")
	})
}

// TestAClusterWithoutContact: with a cache TTL its services leave the copy, and
// only they, until it is back.
func TestAClusterWithoutContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror(func(p *Params) { p.CacheTTL = 500 * time.Millisecond })
	defer m.stop()
	w.equal(a)
	all := len(w.copied())
	must(t, a.Kill())
	gone := func(r wire.Resource) bool { return len(w.cache(r.Prefix("a", true))) == 0 }
	waittest.Until(t, "the services to leave", func() bool {
		return gone(wire.Services) && gone(wire.EndpointSlices) && gone(wire.ServiceExports)
	})
	if gone(wire.Nodes) || gone(wire.Identities) || gone(wire.IPs) {
		t.Error("more than the services has left")
	}
	must(t, a.Start(t.Context()))
	w.equal(a)
	if now := len(w.copied()); now != all {
		t.Errorf("%d keys, there were %d", now, all)
	}
}

// TestAMirrorSaysHowItIs: of a cluster that is copied, of one that cannot be
// connected, and as a standby.
func TestAMirrorSaysHowItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	must(t, os.WriteFile(filepath.Join(w.dir, "away"), []byte("endpoints: [\"http://127.0.0.1:1\"]\n"), 0o600))
	m := w.mirror(func(p *Params) { p.ReadyTimeout = 300 * time.Millisecond })
	defer m.stop()
	waittest.Until(t, "readiness", func() bool { ready, _ := m.Ready(); return ready })
	w.equal(a)
	state := func(name string) remotecluster.State {
		for _, c := range m.Clusters() {
			if c.Name == name {
				return c.State
			}
		}
		return ""
	}
	waittest.Until(t, "both states", func() bool {
		return state("a") == remotecluster.Ready && state("away") == remotecluster.Connecting
	})
	for _, c := range m.Clusters() {
		if c.Name == "a" && (c.Sources[wire.IPs].Count != 50 || c.Sources[wire.ServiceExports].Count == 0) {
			t.Errorf("%+v", c.Sources)
		}
	}
	standby := w.mirror()
	defer standby.stop()
	if ready, reasons := standby.Ready(); ready || len(reasons) == 0 || len(standby.Clusters()) != 0 {
		t.Errorf("a standby is ready at once: %v, %v", ready, reasons)
	}
}

// TestAFileThatIsBack: the copy is withdrawn to the end, and then made again; what
// is said meanwhile is true.
func TestAFileThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror(func(p *Params) { p.DrainDelay = 2 * time.Second })
	defer m.stop()
	w.equal(a)
	says := func(state remotecluster.State, text string) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%s, %q", state, text), func() bool {
			return slices.ContainsFunc(m.Clusters(), func(c remotecluster.Status) bool { return c.State == state && strings.Contains(c.Message, text) })
		})
	}
	must(t, os.Remove(filepath.Join(w.dir, "a")))
	says(remotecluster.Removing, "its file is gone; its entries are being withdrawn; of the copy first the configuration, and after a pause of 2s")
	w.join(a)
	says(remotecluster.Removing, "its file was gone and is back")
	says(remotecluster.Ready, "")
	w.equal(a)
}
