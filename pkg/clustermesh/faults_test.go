package clustermesh

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(to+".tmp", to)
}

// pair returns two synced clusters: struck is subject to faults, and beside must not be affected. unnoticed checks the
// latter.
func pair(t *testing.T) (w *world, struck, beside *remote, unnoticed func()) {
	t.Helper()
	w = newWorld(t)
	struck, beside = w.remote("c1", 1), w.remote("c2", 2)
	struck.join()
	beside.join()
	struck.converges()
	beside.converges()
	w.inState("c1", remotecluster.Ready)
	w.inState("c2", remotecluster.Ready)
	w.quiet()
	before := beside.fingerprint()
	return w, struck, beside, func() {
		t.Helper()
		if after := beside.fingerprint(); !maps.Equal(before, after) {
			t.Errorf("the other cluster noticed: %d objects before, %d after, not the same", len(before), len(after))
		}
		if st, _ := w.status("c2"); st.Failures != 0 || st.State != remotecluster.Ready {
			t.Errorf("the other cluster is %s with %d failures: %s", st.State, st.Failures, st.Message)
		}
	}
}

// kept checks that nothing is withdrawn while the cluster is unreachable.
func (r *remote) kept(before contents) {
	r.w.t.Helper()
	r.w.until(r.name+" to be degraded", func() bool {
		st, ok := r.w.status(r.name)
		return ok && st.State == remotecluster.Degraded && !st.Connected
	})
	if now := r.inView(); !maps.Equal(before, now) {
		r.w.t.Errorf("while away %d of %d objects are left", len(now), len(before))
	}
}

func TestChangesWhileAway(t *testing.T) {
	t.Parallel()
	for name, compacts := range map[string]bool{"that are in the history": false, "that are compacted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c1, _, unnoticed := pair(t)
			c1.away(func() {
				for i := range 30 {
					c1.remove(i)
				}
				if compacts {
					resp, err := c1.kv.Get(c1.ctx(), "x")
					must(t, err)
					_, err = c1.kv.Compact(c1.ctx(), resp.Header.Revision, clientv3.WithCompactPhysical())
					must(t, err)
				}
				for i := 30; i < 60; i++ {
					c1.object(i, 2)
				}
				c1.fill(120, 140)
			}, c1.inView())
			c1.converges()
			unnoticed()
		})
	}
}

// away runs f, which changes the cluster's etcd, while the mesh cannot reach it: the server moves to another port and
// back.
func (r *remote) away(f func(), before contents) {
	r.w.t.Helper()
	file := filepath.Join(r.w.dir, r.name)
	good, err := os.ReadFile(file)
	must(r.w.t, err)
	// With a client file without a server, the mesh loses the cluster, while the server runs on and can be written.
	must(r.w.t, copyFile(r.nowhere(), file))
	r.w.until("the file that leads nowhere to be read", func() bool { // on a slow machine a session may end before
		st, _ := r.w.status(r.name)
		return slices.Contains(st.Endpoints, "http://127.0.0.1:1")
	})
	r.kept(before)
	f()
	if now := r.inView(); !maps.Equal(before, now) {
		r.w.t.Errorf("while away the view changed")
	}
	must(r.w.t, os.WriteFile(file+".tmp", good, 0o600))
	must(r.w.t, os.Rename(file+".tmp", file))
}

func (r *remote) nowhere() string {
	path := filepath.Join(r.w.t.TempDir(), "nowhere")
	must(r.w.t, os.WriteFile(path, []byte("endpoints:\n- http://127.0.0.1:1\n"), 0o600))
	return path
}

func TestReplacedByAnotherServer(t *testing.T) {
	t.Parallel()
	_, c1, _, unnoticed := pair(t)
	before := c1.inView()
	id := c1.etcd.ClusterID()
	c1.etcd.RestartAsOther(t)
	if c1.etcd.ClusterID() == id {
		t.Fatal("the other server has the same etcd cluster ID")
	}
	// The new server is empty: without a configuration, objects missing from it are not withdrawn.
	c1.w.until("a session with the empty server", func() bool {
		st, _ := c1.w.status("c1")
		return st.Connected && st.Failures > 0 && !st.ConnectedSince.IsZero() && st.State == remotecluster.Degraded
	})
	if now := c1.inView(); !maps.Equal(before, now) {
		t.Errorf("%d of %d objects are left after the empty server came", len(now), len(before))
	}
	c1.kv = c1.etcd.Client(t)
	c1.fill(50, 200) // some of the earlier objects, unchanged, and new ones
	c1.converges()
	c1.w.inState("c1", remotecluster.Ready)
	unnoticed()
}

func TestWipedUnderTheSameToken(t *testing.T) {
	t.Parallel()
	_, c1, _, unnoticed := pair(t)
	c1.etcd.RestartEmpty(t)
	c1.kv = c1.etcd.Client(t)
	c1.fill(100, 130)
	c1.converges()
	unnoticed()
}

func TestTheFileIsRemovedAndComesBack(t *testing.T) {
	t.Parallel()
	w, c1, _, unnoticed := pair(t)
	must(t, os.Remove(filepath.Join(w.dir, "c1")))
	w.gone("c1")
	w.until("nothing to be left of it", func() bool { return len(c1.fingerprint()) == 0 })
	// Its ID is free for another cluster. While that one has it, c1 cannot use it.
	other := w.remote("c9", 1)
	other.join()
	w.inState("c9", remotecluster.Ready)
	c1.join()
	w.inState("c1", remotecluster.Failed)
	if len(c1.inView()) != 0 {
		t.Error("a cluster whose ID is taken shows entries")
	}
	must(t, os.Remove(filepath.Join(w.dir, "c9")))
	w.inState("c1", remotecluster.Ready)
	c1.converges()
	unnoticed()
}

func TestTwoClustersSwapTheirIDs(t *testing.T) {
	t.Parallel()
	w, c1, c2, _ := pair(t)
	for _, r := range []*remote{c1, c2} {
		for i := range 120 {
			r.remove(i)
		}
	}
	c1.id, c2.id = 2, 1
	c1.fill(0, 30)
	c2.fill(0, 30)
	for name, id := range map[string]uint32{"c1": 2, "c2": 1} {
		w.until(name+" to have its new ID", func() bool {
			st, _ := w.status(name)
			return st.ID == id && st.State == remotecluster.Ready
		})
	}
	c1.converges()
	c2.converges()
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.until("ready without any file", func() bool { ok, _ := w.mesh.Ready(); return ok })

	w = newWorld(t)
	w.stop() // either before the directory is read, or after the last scan
	w.mesh = New(w.mesh.Params)
	w.mesh.SyncTimeout = time.Hour
	if ok, reasons := w.mesh.Ready(); ok || reasons["mesh directory"] == "" {
		t.Errorf("before the directory was read: %t, %v", ok, reasons)
	}
	c1 := w.remote("c1", 1)
	must(t, copyFile(c1.nowhere(), filepath.Join(w.dir, "c0")))
	c1.join()
	w.start()
	w.until("c0 alone to be waited for", func() bool {
		ok, reasons := w.mesh.Ready()
		return !ok && len(reasons) == 1 && reasons["c0"] != ""
	})
	must(t, os.Remove(filepath.Join(w.dir, "c0")))
	w.until("ready", func() bool { ok, _ := w.mesh.Ready(); return ok })
	c1.etcd.Kill(t)
	w.inState("c1", remotecluster.Degraded)
	if ok, _ := w.mesh.Ready(); !ok {
		t.Error("a remote that goes away later must not take readiness back")
	}
}

func TestTheSyncTimeoutEndsTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	w.mesh = New(w.mesh.Params)
	w.mesh.SyncTimeout = 100 * time.Millisecond
	must(t, os.WriteFile(filepath.Join(w.dir, "c0"), []byte("endpoints:\n- http://127.0.0.1:1\n"), 0o600))
	w.start()
	w.until("ready without c0", func() bool { ok, _ := w.mesh.Ready(); return ok })
	reg := prometheus.NewPedanticRegistry()
	must(t, reg.Register(NewCollector(w.mesh)))
	want := func(n float64) bool {
		families, err := reg.Gather()
		must(t, err)
		for _, f := range families {
			if f.GetName() == "mesh_agent_clustermesh_ready_without_clusters" {
				return f.GetMetric()[0].GetGauge().GetValue() == n
			}
		}
		return false
	}
	if missing := w.mesh.Missing(); len(missing) != 1 || !strings.Contains(missing["c0"], "not synced") || !want(1) {
		t.Errorf("ready without %v", missing)
	}
	// Clusters that were added later are not waited for, and removed ones are not missing.
	must(t, os.WriteFile(filepath.Join(w.dir, "c1"), []byte("endpoints:\n- http://127.0.0.1:1\n"), 0o600))
	w.until("c1", func() bool { return len(w.mesh.Clusters()) == 2 })
	if missing := w.mesh.Missing(); len(missing) != 1 || missing["c0"] == "" {
		t.Errorf("with c1 it is ready without %v", missing)
	}
	must(t, os.Remove(filepath.Join(w.dir, "c0")))
	w.until("nothing to be missing", func() bool { return len(w.mesh.Missing()) == 0 && want(0) })
}

// TestReadinessWaitsForTheDirectory: also after the sync timeout, since a directory that cannot be read is not an empty
// one.
func TestReadinessWaitsForTheDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	p := w.mesh.Params
	p.Directory, p.SyncTimeout = filepath.Join(w.dir, "missing"), time.Nanosecond
	looked := make(chan error, 100)
	p.Report = func(err error) { looked <- err }
	p.Leftovers = func(context.Context) ([]string, error) {
		if _, err := os.Stat(p.Directory); err != nil {
			t.Error("leftovers were asked for before the directory was read")
		}
		return nil, nil
	}
	w.mesh = New(p)
	w.start()
	for range 2 {
		if <-looked == nil {
			t.Fatal("the directory was read")
		}
	}
	if ok, reasons := w.mesh.Ready(); ok || len(reasons) != 1 || !strings.Contains(reasons[Directory], "does not exist") {
		t.Errorf("before the directory was read: %t, %v", ok, reasons)
	}
	must(t, os.Mkdir(p.Directory, 0o700))
	w.until("ready without any file", func() bool { ok, _ := w.mesh.Ready(); return ok })
}
