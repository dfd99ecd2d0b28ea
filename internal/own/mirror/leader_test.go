package mirror

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/rightstest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// reader follows a prefix of the own etcd as an agent does, until the end of the test. It counts the known keys, and
// the changes since all keys were known.
func (w *world) reader(prefix string) (known, changes *atomic.Int64) {
	w.t.Helper()
	known, changes = new(atomic.Int64), new(atomic.Int64)
	opts := etcd.DefaultOptions()
	opts.QPS = 0
	as := rightstest.As(w.t, w.etcd, "local-own")
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

// TestAnotherMirrorTakesOver: of two one leads. When it ends, the other one takes over: it writes each key at most
// once, to tie it to its own lease, and deletes none.
func TestAnotherMirrorTakesOver(t *testing.T) {
	t.Parallel()
	w, a, first := copying(t)
	second := w.mirror()
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
	w, a, _ := copying(t)
	second := w.mirror()
	w.deleteLock()
	for n := range 50 { // changes all the while
		must(t, a.Put(t.Context(), wire.Nodes.Key("a", false, "extra"), fmt.Append(nil, n)))
	}
	waittest.Until(t, "the second to lead", second.Leads)
	waittest.Until(t, "the last change", func() bool { return w.copied()[wire.Nodes.Key("a", true, "extra")] == "49" })
	w.equal(a)
	// Each mirror ties the keys that it writes to its own lease; in no key's history is a lease of the first mirror
	// after one of the second.
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

// TestWhatIsLeftOfARemovedCluster: the lead changes before its removal is complete, and no mirror has its file now. The
// next leader continues the removal; existing clusters, and the keys of the own cluster's operator, stay.
func TestWhatIsLeftOfARemovedCluster(t *testing.T) {
	t.Parallel()
	w, a, _ := copying(t)
	b := w.remote("b", 2)
	w.join(b)
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
	w.deleteLock()
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
