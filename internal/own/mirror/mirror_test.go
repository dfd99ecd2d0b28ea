package mirror

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheCacheIsWhatTheRemotesHave: key for key and byte for byte, from the first copy on, through
// changes, and until a cluster's file is gone. One change of a remote costs one write.
func TestTheCacheIsWhatTheRemotesHave(t *testing.T) {
	t.Parallel()
	w, a, m := copying(t)
	b := w.remote("b", 2)
	w.join(b)
	w.equal(a, b)
	waittest.Until(t, "readiness", func() bool { ready, _ := m.Ready(); return ready })

	from := w.revision() + 1
	must(t, a.Put(t.Context(), wire.Nodes.Key("a", false, "new"), []byte(`{"any":"value"}`)))
	waittest.Until(t, "a new key", func() bool { return w.copied()[wire.Nodes.Key("a", true, "new")] == `{"any":"value"}` })
	must(t, a.Delete(t.Context(), wire.Nodes.Key("a", false, "new")))
	waittest.Until(t, "its deletion", func() bool { _, there := w.copied()[wire.Nodes.Key("a", true, "new")]; return !there })
	if puts, deletes := w.since(from); len(puts) != 1 || len(deletes) != 1 {
		t.Errorf("a key that came and went cost %d puts and %d deletions", len(puts), len(deletes))
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
	w, _, _ := copying(t)
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

// TestWhatBecomesOfTheRemote: it dies, starts again, is compacted, is replaced with the same data or with other, and at
// last the copy equals it. No key is deleted from the copy that still exists in the remote, and no equal value is
// written.
func TestWhatBecomesOfTheRemote(t *testing.T) {
	t.Parallel()
	w, a, _ := copying(t)
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

// TestWhatBecomesOfTheCopy: keys that another writer deletes or changes are written again, all of them when the own
// etcd is emptied, and then the canaries last.
func TestWhatBecomesOfTheCopy(t *testing.T) {
	t.Parallel()
	w, a, _ := copying(t)
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

// TestAClusterWithoutContact: with a cache TTL its services leave the copy, and
// only they, until it is back.
func TestAClusterWithoutContact(t *testing.T) {
	t.Parallel()
	w, a, _ := copying(t, func(p *Params) { p.CacheTTL = 500 * time.Millisecond })
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
	waittest.Until(t, "readiness", func() bool { ready, _ := m.Ready(); return ready })
	w.equal(a)
	waittest.Until(t, "both states", func() bool {
		return m.state("a").State == remotecluster.Ready && m.state("away").State == remotecluster.Connecting
	})
	if s := m.state("a").Families; s[wire.IPs].Count != 50 || s[wire.ServiceExports].Count == 0 {
		t.Errorf("%+v", s)
	}
	standby := w.mirror()
	if ready, reasons := standby.Ready(); ready || len(reasons) == 0 || len(standby.Clusters()) != 0 {
		t.Errorf("a standby is ready at once: %v, %v", ready, reasons)
	}
}

// TestAFileThatIsBack: the copy is withdrawn completely, and then made again; the states reported meanwhile are true.
func TestAFileThatIsBack(t *testing.T) {
	t.Parallel()
	w, a, m := copying(t, func(p *Params) { p.DrainDelay = 2 * time.Second })
	says := func(state remotecluster.State, text string) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%s, %q", state, text), func() bool {
			return slices.ContainsFunc(m.Clusters(), func(c remotecluster.Status) bool { return c.State == state && strings.Contains(c.Message, text) })
		})
	}
	before := w.cache(wire.CachePrefix + "/")
	must(t, os.Remove(filepath.Join(w.dir, "a")))
	says(remotecluster.Removing, "its file is gone; its entries are being withdrawn; of the copy first the configuration, and after a pause of 2s")
	w.join(a)
	says(remotecluster.Removing, "its file was gone and is back")
	says(remotecluster.Ready, "")
	w.equal(a)
	now := w.cache(wire.CachePrefix + "/")
	for key, e := range before {
		if now[key].created <= e.created {
			t.Errorf("%s did not go and come back", key)
		}
	}
}
