package mirror

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// some is the number of objects of each kind.
const some = 500

// TestAgentsReadACopy: each side's agent reads a copy of the other side's cluster, made by either side's mirror,
// through creation, update, deletion and a restart of the copied etcd. Our agent reads what Cilium publishes, and
// Cilium's what our stores publish.
func TestAgentsReadACopy(t *testing.T) {
	t.Parallel()
	for side, path := range map[string]interop.Path{"theirs": interop.ByCilium, "ours": interop.ByUs} {
		for _, d := range []interop.Direction{interop.TheyWrite, interop.WeWrite} {
			t.Run(fmt.Sprintf("%s, %s", path, d), func(t *testing.T) {
				t.Parallel()
				agentReads(t, side, path, d)
			})
		}
	}
}

// publisher is Cilium's peer, or this project's stores.
type publisher interface {
	Put(testing.TB, model.Objects)
	Delete(testing.TB, model.Objects)
	Synced(testing.TB, ...model.Kind)
}

func agentReads(t *testing.T, side string, path interop.Path, d interop.Direction) {
	w := newWorld(t)
	copy := etcdtest.StartProcess(t)
	var p publisher
	if d == interop.TheyWrite {
		p = interop.Publish(t, interop.Newest, w.file(), config())
	} else {
		p = ours.Publish(t, w.file(), config())
	}
	all := w.maker.Objects(0, some)
	p.Put(t, all)
	p.Synced(t, model.Published()...)
	m := w.start(side, copy)
	agent, dir := w.ourAgent, t.TempDir()
	if d == interop.WeWrite {
		agent = w.theirAgent
	}
	interop.ClientFile(t, dir, far, copy.Endpoint())
	if side == "ours" {
		ours.Heartbeats(t, filepath.Join(dir, far))
	}
	sees, quiet := agent(copy, dir)
	sees("at first", all)
	w.keep(all, d, path)

	now := both(w.maker.Objects(0, some/2), cut(all, some/2, some*3/4))
	p.Put(t, cut(now, 0, some/2))
	p.Delete(t, cut(all, some*3/4, some))
	sees("after changes", now)

	w.far.Kill(t)
	w.far.Restart(t)
	now = both(w.maker.Objects(0, some/4), cut(now, some/4, some*3/4))
	p.Put(t, cut(now, 0, some/4))
	sees("after a restart", now)
	w.keep(now, d, path)

	quiet()
	interop.Quiet(t, "the mirror", w.complaints(m), expected...)
}

// ourAgent reads a copy with our agent in home, whose mesh directory names it, and with our stores.
func (w *world) ourAgent(copy *etcdtest.Process, dir string) (sees func(string, model.Objects), quiet func()) {
	w.Helper()
	r := w.reader(copy)
	a := interop.StartAgent(w, "run", "--cluster-name", home, "--cluster-id", fmt.Sprint(homeID), "--clustermesh-config", dir)
	return func(when string, want model.Objects) {
		w.Helper()
		w.shows(when, r, want)
		w.counts(when, a, want)
	}, func() { a.Quiet(w) }
}

// theirAgent reads the copy that a mesh directory names with the code of Cilium's agent.
func (w *world) theirAgent(_ *etcdtest.Process, dir string) (sees func(string, model.Objects), quiet func()) {
	w.Helper()
	r := interop.Read(w, interop.Newest, model.ReadArgs{Cluster: home, ClusterID: homeID, MaxConnectedClusters: 255, Dir: dir})
	return func(when string, want model.Objects) {
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
	}, func() { interop.Quiet(w, "Cilium's reader", r.Complaints(), expected...) }
}

// complaints returns the errors and warnings of a mirror.
func (w *world) complaints(m mirrorer) []interop.LogLine {
	w.Helper()
	if a, ours := m.(*interop.Agent); ours {
		return a.Complaints(w)
	}
	return m.(*interop.Peer).Complaints()
}

// counts waits until the agent is ready and has the expected number of objects.
func (w *world) counts(when string, a *interop.Agent, want model.Objects) {
	w.Helper()
	interop.Until(w, "the agent to show all "+when, time.Minute, func(ctx context.Context) error {
		clusters, err := agentapi.List[api.Cluster](ctx, a.Socket, "clusters")
		if err != nil || len(clusters) != 1 {
			return fmt.Errorf("%d clusters, %w", len(clusters), err)
		}
		if c := clusters[0]; !c.Ready {
			return fmt.Errorf("%s is not ready: %s", c.Name, c.Message)
		}
		nodes, err := agentapi.List[api.Node](ctx, a.Socket, "nodes")
		if err != nil || len(nodes) != len(want.Nodes) {
			return fmt.Errorf("%d nodes of %d, %w", len(nodes), len(want.Nodes), err)
		}
		identities, err := agentapi.List[api.Identity](ctx, a.Socket, "identities")
		if err != nil || len(identities) != len(want.Identities) {
			return fmt.Errorf("%d identities of %d, %w", len(identities), len(want.Identities), err)
		}
		return nil
	})
}

// expected are words in the log of a mirror or a reader during a restart of the etcd that it is connected to. All of
// them are about the connection.
var expected = []string{
	"retrying of unary invoker failed",                 // the etcd client of both sides
	"reconnecting etcd",                                // Cilium's, about a remote
	"MESH-1004", "MESH-1007", "MESH-1009", "MESH-1011", // ours, about a remote: lost, degraded, not connected, for another reason
}

// TestBothMirrorsWriteTheSame: both make the same copy of one etcd, key by key and byte for byte. Only the canaries'
// times differ.
func TestBothMirrorsWriteTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := interop.Publish(t, interop.Newest, w.file(), config())
	all := w.maker.Objects(0, some)
	p.Put(t, all)
	p.Synced(t, model.Published()...)
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

// TestARemovedClusterIsWithdrawn: both mirrors withdraw it in the same order, first its configuration. Cilium's mirror
// then waits for three minutes, and the test ends before that.
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
			p.Synced(t, model.Published()...)
			w.start(side, copy)
			w.complete(client, all)
			interop.Must(t, os.Remove(w.file()))
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
