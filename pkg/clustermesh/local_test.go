package clustermesh

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// ownCluster returns a world whose own cluster has a kvstore. The mesh reads it with the returned client file, which
// does not exist yet.
func ownCluster(t *testing.T, change ...func(*Params)) (w *world, own *remote, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "etcd.config")
	w = newWorld(t, append(change, func(p *Params) { p.Own = &OwnKVStore{Path: file, Load: etcd.Options{ConfigPath: file}.Config} })...)
	info := w.mesh.Params.Local
	own = &remote{w: w, name: info.Name, id: info.ID, etcd: etcdtest.StartProcess(t)}
	own.kv = own.etcd.Client(t)
	return w, own, file
}

func (w *world) localIs(s remotecluster.State) remotecluster.Status {
	w.t.Helper()
	w.until("the own cluster to be "+string(s), func() bool { st, ok := w.mesh.Local(); return ok && st.State == s }, func() string {
		st, _ := w.mesh.Local()
		return fmt.Sprintf("%s: %s", st.State, st.Message)
	})
	st, _ := w.mesh.Local()
	return st
}

// claim writes an entry for any address.
func (r *remote) claim(addr netip.Addr, pod string) {
	pair := wire.IPIdentityPair{IP: net.IP(addr.AsSlice()), Identity: r.id<<16 + 1, Pod: pod, Namespace: "ns"}
	r.put(r.key(wire.IPs, pair.Name()), pair.Encode())
}

func (w *world) winner(addr netip.Addr) string {
	e := w.view.IPs.LookupWinner(addr)
	if e == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s by %s", e.Cluster().Name, e.Source())
}

func TestTheOwnClusterIsReadFromItsKVStore(t *testing.T) {
	t.Parallel()
	w, own, file := ownCluster(t)
	c1 := w.remote("c1", 1)
	contested := own.addr(3)
	c1.claim(contested, "thief")
	c1.join()
	w.inState("c1", remotecluster.Ready)
	c1.converges()
	w.until("the remote to have the address", func() bool { return w.winner(contested) == "c1 by clustermesh" })

	// Its file is created late, and the mesh waits for it by name.
	st := w.localIs(remotecluster.Failed)
	if !strings.Contains(st.Message, file) {
		t.Errorf("the message does not name the file: %q", st.Message)
	}
	if ok, reasons := w.mesh.Ready(); ok || len(reasons) != 1 || !strings.Contains(reasons["local kvstore"], file) {
		t.Errorf("ready %t, reasons %v", ok, reasons)
	}
	own.fill(0, 20)
	own.delete(wire.ClusterConfigKey(own.name)) // the mesh does not wait for it
	own.put(own.key(wire.Identities, "16384300"), []byte("k8s:app=no-cluster-label;"))
	own.put(own.key(wire.Identities, "131072"), []byte("k8s:app=another-clusters-number;"))
	must(t, copyFile(own.etcd.ConfigFile(t), file))
	w.localIs(remotecluster.Ready)
	own.delete(own.key(wire.Identities, "131072"))
	own.converges()
	if st, _ := w.mesh.Local(); st.ID != 250 || st.ConfigFile != file || st.Families[wire.Identities].Count != 21 {
		t.Errorf("status %+v", st)
	}
	if _, there := w.status("own"); there {
		t.Error("the own cluster is listed as a remote one")
	}
	if got := w.winner(contested); got != "own by kvstore" {
		t.Errorf("%s is of %s", contested, got)
	}
	for s := range services.ByCluster(w.db.ReadTxn(), w.view.Services.Exported(), "own") {
		if !s.Local() {
			t.Errorf("service %s is not local", s.FullName())
		}
	}
	w.until("ready", func() bool { ok, _ := w.mesh.Ready(); return ok })

	// When the own entry is deleted, the remote one takes over at once; and back.
	own.delete(own.key(wire.IPs, contested.String()))
	w.until("the remote to take over", func() bool { return w.winner(contested) == "c1 by clustermesh" })
	own.object(3, 2)
	w.until("the own cluster to take it back", func() bool { return w.winner(contested) == "own by kvstore" })

	// While the server is only unreachable, nothing is withdrawn.
	own.converges()
	before := own.inView()
	own.etcd.Kill(t)
	w.until("the own cluster to be away", func() bool {
		st, _ := w.mesh.Local()
		return st.State == remotecluster.Degraded && !st.Connected && strings.Contains(st.Message, "is kept")
	})
	if now := own.inView(); !maps.Equal(before, now) {
		t.Errorf("%d of %d objects are left", len(now), len(before))
	}
	if ok, _ := w.mesh.Ready(); !ok {
		t.Error("readiness was taken back")
	}
	own.etcd.Restart(t)
	own.remove(5)
	w.localIs(remotecluster.Ready)
	own.converges()
}

func TestALocalKVStoreOfAnObserver(t *testing.T) {
	t.Parallel()
	w, own, file := ownCluster(t, func(p *Params) {
		p.Local = wire.ClusterInfo{Name: "default", MaxConnectedClusters: 255}
	})
	must(t, copyFile(own.etcd.ConfigFile(t), file))
	own.fill(0, 3) // identities 0 to 2 are outside the range of allocation
	own.put(own.key(wire.Identities, "256"), []byte("k8s:app=first;"))
	own.put(own.key(wire.Identities, "65535"), []byte("k8s:app=last;"))
	own.put(own.key(wire.Identities, "65536"), []byte("k8s:app=beyond;"))
	w.localIs(remotecluster.Ready)
	w.until("all to be seen", func() bool {
		st, _ := w.mesh.Local()
		return st.Families[wire.Nodes].Count == 3 && st.Families[wire.Identities].Count == 2 && st.Families[wire.Identities].Rejections[wire.ReasonRange] == 4
	})
	for n := range nodes.ByCluster(w.db.ReadTxn(), w.view.Nodes.Table(), "default") {
		if n.Source != wire.SourceKVStore {
			t.Errorf("node %s is by %s", n.Name, n.Source)
		}
	}
}

func TestTheClientFileOfTheOwnClusterChanges(t *testing.T) {
	t.Parallel()
	w, own, file := ownCluster(t)
	own.fill(0, 5)
	must(t, copyFile(own.etcd.ConfigFile(t), file))
	w.localIs(remotecluster.Ready)
	before := own.inView()
	must(t, copyFile(own.nowhere(), file))
	w.until("the new file to be used", func() bool {
		st, _ := w.mesh.Local()
		return st.State == remotecluster.Degraded && strings.Contains(st.Message, "127.0.0.1:1")
	})
	if now := own.inView(); !maps.Equal(before, now) {
		t.Errorf("%d of %d objects are left", len(now), len(before))
	}
	must(t, os.Remove(file)) // the last known contents still count
	must(t, copyFile(own.etcd.ConfigFile(t), file))
	own.object(1, 2)
	w.localIs(remotecluster.Ready)
	own.converges()
}

// TestASessionLastsWhenItsFileWasJustWritten: a session is ended only when the file's contents differ from those it
// started with.
func TestASessionLastsWhenItsFileWasJustWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f loadedFile
		path := filepath.Join(t.TempDir(), "etcd.config")
		f.note(path) // the file does not exist
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); f.outdated(ctx, path) }()
		lasts := func(when string) {
			t.Helper()
			select {
			// The clock stands still while the test writes and loads the file. The follower must not be due at the same
			// time: it might read between the two.
			case <-time.After(time.Minute + 1234*time.Millisecond): // only if the file is never read
			case <-ended:
				t.Fatalf("it is outdated: %s", when)
			}
		}
		lasts("without a file")
		write(t, path, configText(1))
		f.note(path) // the attempt that starts the session
		lasts("the contents are those that were loaded")
		write(t, path, configText(3))
		f.note(path) // the next attempt is earlier than the next look
		lasts("the contents were loaded before they counted")
		must(t, os.Remove(path))
		lasts("the file is gone")
		write(t, path, configText(2))
		<-ended
	})
}
