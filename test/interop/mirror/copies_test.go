package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// some is how many objects of each kind there are.
const some = 500

// TestOurAgentReadsACopy of what Cilium publishes, of either side's mirror, through
// creation, update, deletion and a restart of the etcd that is copied.
func TestOurAgentReadsACopy(t *testing.T) {
	t.Parallel()
	for side, path := range mirrors() {
		t.Run(string(path), func(t *testing.T) {
			t.Parallel()
			ourAgentReads(t, side, path)
		})
	}
}

// mirrors are the paths through the mirrors of each side.
func mirrors() map[string]interop.Path {
	return map[string]interop.Path{"theirs": interop.ByCilium, "ours": interop.ByUs}
}

func ourAgentReads(t *testing.T, side string, path interop.Path) {
	w := newWorld(t)
	copy := etcdtest.StartProcess(t)
	p := interop.Publish(t, interop.Newest, w.file(), config())
	all := w.maker.Objects(0, some)
	p.Put(t, all)
	p.Synced(t, interop.Published()...)
	m := w.start(side, copy)
	r := w.reader(copy)
	w.shows("at first", r, all)
	w.keep(all, interop.TheyWrite, path)
	a := w.agent(copy)
	w.counts("at first", a, all)

	now := both(w.maker.Objects(0, some/2), cut(all, some/2, some*3/4))
	p.Put(t, cut(now, 0, some/2))
	p.Delete(t, cut(all, some*3/4, some))
	w.shows("after changes", r, now)
	w.counts("after changes", a, now)

	w.far.Kill(t)
	w.far.Restart(t)
	now = both(w.maker.Objects(0, some/4), cut(now, some/4, some*3/4))
	p.Put(t, cut(now, 0, some/4))
	w.shows("after a restart", r, now)
	w.counts("after a restart", a, now)
	w.keep(now, interop.TheyWrite, path)

	w.quiet(a)
	w.complains("the mirror", w.complaints(m))
}

// complaints are those of a mirror.
func (w *world) complaints(m mirrorer) []interop.LogLine {
	w.Helper()
	if a, ours := m.(*interop.Agent); ours {
		return a.Complaints(w)
	}
	return m.(*interop.Peer).Complaints()
}

// agent starts our agent in home, which reads a copy.
func (w *world) agent(copy *etcdtest.Process) *interop.Agent {
	w.Helper()
	dir := w.TempDir()
	interop.ClientFile(w, dir, far, copy.Endpoint())
	return interop.StartAgent(w, "run", "--cluster-name", home, "--cluster-id", fmt.Sprint(homeID), "--clustermesh-config", dir)
}

// counts waits until the agent is ready and has as many objects as there must be.
func (w *world) counts(when string, a *interop.Agent, want model.Objects) {
	w.Helper()
	interop.Until(w, "the agent to show all "+when, time.Minute, func(ctx context.Context) error {
		clusters, err := interop.List[api.Cluster](ctx, a, "clusters")
		if err != nil || len(clusters) != 1 {
			return fmt.Errorf("%d clusters, %w", len(clusters), err)
		}
		if c := clusters[0]; !c.Ready {
			return fmt.Errorf("%s is not ready: %s", c.Name, c.Message)
		}
		nodes, err := interop.List[api.Node](ctx, a, "nodes")
		if err != nil || len(nodes) != len(want.Nodes) {
			return fmt.Errorf("%d nodes of %d, %w", len(nodes), len(want.Nodes), err)
		}
		identities, err := interop.List[api.Identity](ctx, a, "identities")
		if err != nil || len(identities) != len(want.Identities) {
			return fmt.Errorf("%d identities of %d, %w", len(identities), len(want.Identities), err)
		}
		return nil
	})
}

// quiet checks that the agent has refused nothing and has not complained.
func (w *world) quiet(a *interop.Agent) {
	w.Helper()
	clusters, err := interop.List[api.Cluster](w.Context(), a, "clusters")
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range clusters {
		for _, r := range c.Refusals {
			w.Errorf("%s: refused: %+v", c.Name, r)
		}
	}
	for _, l := range a.Complaints(w) {
		w.Errorf("the agent complains: %s", l.Text)
	}
}

// expected are the words of what a mirror or a reader may say of a restart of the
// etcd that it is connected to. All of them are about the connection.
var expected = []string{
	"retrying of unary invoker failed",                 // the etcd client of both
	"reconnecting etcd",                                // Cilium's, of a remote
	"MESH-1004", "MESH-1007", "MESH-1009", "MESH-1011", // ours, of a remote: lost, degraded, not connected, for another reason
}

// complains fails the test for complaints of anything else.
func (w *world) complains(who string, complaints []interop.LogLine) {
	w.Helper()
	for _, l := range complaints {
		if !slices.ContainsFunc(expected, func(words string) bool { return strings.Contains(l.Text, words) }) {
			w.Errorf("%s complains: %s", who, l.Text)
		}
	}
}

// TestCiliumsAgentReadsACopy of what a writer of ours publishes, of either side's
// mirror, through the same.
func TestCiliumsAgentReadsACopy(t *testing.T) {
	t.Parallel()
	for side, path := range mirrors() {
		t.Run(string(path), func(t *testing.T) {
			t.Parallel()
			theirAgentReads(t, side, path)
		})
	}
}

func theirAgentReads(t *testing.T, side string, path interop.Path) {
	w := newWorld(t)
	copy := etcdtest.StartProcess(t)
	p := ours.Publish(w.file(), config(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	put := func(put, delete model.Objects) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := errors.Join(p.Put(put), p.Delete(delete)); err != nil {
			t.Fatal(err)
		}
		p.Synced()
		if err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	all := w.maker.Objects(0, some)
	put(all, model.Objects{})
	m := w.start(side, copy)
	dir := t.TempDir()
	interop.ClientFile(t, dir, far, copy.Endpoint())
	r := interop.Read(t, interop.Newest, model.ReadArgs{Cluster: home, ClusterID: homeID, MaxConnectedClusters: 255, Dir: dir})
	w.holds("at first", r, all)
	w.keep(all, interop.WeWrite, path)

	now := both(w.maker.Objects(0, some/2), cut(all, some/2, some*3/4))
	put(cut(now, 0, some/2), cut(all, some*3/4, some))
	w.holds("after changes", r, now)

	w.far.Kill(t)
	w.far.Restart(t)
	now = both(w.maker.Objects(0, some/4), cut(now, some/4, some*3/4))
	put(cut(now, 0, some/4), model.Objects{})
	w.holds("after a restart", r, now)
	w.keep(now, interop.WeWrite, path)

	w.complains("the mirror", w.complaints(m))
	w.complains("Cilium's reader", r.Complaints())
}

// holds waits until a reader of Cilium has just what it keeps of the objects.
func (w *world) holds(when string, r interop.Reader, want model.Objects) {
	w.Helper()
	kept := interop.KeptByCilium(want)
	interop.Until(w, "Cilium to have all "+when, 2*time.Minute, func(context.Context) error {
		for _, c := range r.Clusters(w) {
			if !c.Ready {
				return fmt.Errorf("%s is not ready: %+v", c.Name, c)
			}
		}
		return interop.Same(kept, r.View(w))
	})
}

// TestBothMirrorsWriteTheSame: of one etcd both make the same copy, key for key and
// byte for byte. Only the canaries' times differ.
func TestBothMirrorsWriteTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := interop.Publish(t, interop.Newest, w.file(), config())
	all := w.maker.Objects(0, some)
	p.Put(t, all)
	p.Synced(t, interop.Published()...)
	copies := map[string]map[string]string{}
	for _, side := range []string{"theirs", "ours"} {
		copy := etcdtest.StartProcess(t)
		w.start(side, copy)
		w.shows("by "+side, w.reader(copy), all)
		copies[side] = w.complete(copy.Client(t), all)
	}
	if d := cmp.Diff(copies["theirs"], copies["ours"]); d != "" {
		t.Errorf("the copies differ (-theirs +ours):\n%s", d)
	}
	t.Logf("%d keys are the same", len(copies["ours"]))
}

// complete waits until a copy has its configuration, its canaries and all entries.
func (w *world) complete(client *clientv3.Client, want model.Objects) map[string]string {
	w.Helper()
	var found map[string]string
	interop.Until(w, "all canaries", time.Minute, func(ctx context.Context) error {
		all, err := entries(ctx, client)
		if err != nil {
			return err
		}
		found = copied(all)
		if n, want := len(found), want.Len()+len(wire.Resources())+1; n != want {
			return fmt.Errorf("%d keys, want %d", n, want)
		}
		return nil
	})
	return maps.Clone(found)
}

// TestARemovedClusterIsWithdrawn by both mirrors in the same order: first its
// configuration. Of Cilium, which then waits for three minutes, no more is seen.
func TestARemovedClusterIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"theirs", "ours"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			copy := etcdtest.StartProcess(t)
			client := copy.Client(t)
			p := interop.Publish(t, interop.Newest, w.file(), config())
			all := w.maker.Objects(0, 20)
			p.Put(t, all)
			p.Synced(t, interop.Published()...)
			w.start(side, copy)
			w.complete(client, all)
			if err := os.Remove(w.file()); err != nil {
				t.Fatal(err)
			}
			interop.Until(t, "the configuration to be withdrawn", time.Minute, func(ctx context.Context) error {
				now, err := entries(ctx, client)
				if _, has := now[wire.ClusterConfigKey(far)]; has {
					return fmt.Errorf("it is there, %w", err)
				}
				if n := count(now, "cilium/cache/"); err == nil && n != all.Len() {
					t.Errorf("%d entries when the configuration is gone, want %d", n, all.Len())
				}
				return err
			})
			if side == "theirs" {
				return
			}
			interop.Until(t, "all to be withdrawn", time.Minute, func(ctx context.Context) error {
				now, err := entries(ctx, client)
				synced, cached := count(now, wire.SyncedDir(far)), count(now, "cilium/cache/")
				if synced > 0 && cached < all.Len() {
					t.Errorf("%d canaries when %d entries are left", synced, cached)
				}
				if cached > 0 || err != nil {
					return fmt.Errorf("%d are left, %w", cached, err)
				}
				return nil
			})
		})
	}
}
