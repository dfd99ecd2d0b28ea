package clustermesh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// export writes the export of a service, and returns its key.
func (r *remote) export(name string) string {
	e := wire.ServiceExport{
		Cluster: r.name, Namespace: "ns", Name: name, ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(int64(r.id), 0)},
		Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
	}
	key := r.key(wire.ServiceExports, "ns/"+name)
	r.put(key, e.Encode())
	return key
}

// announce writes the configuration of a cluster: it supports exports or not, or does not mention them, and it writes
// canaries.
func (r *remote) announce(exports *bool) {
	r.configure(wire.Capabilities{MaxConnectedClusters: 255, Cached: r.cached, SyncedCanaries: true, ServiceExportsEnabled: exports})
}

// canaries writes the canaries of all resources except one.
func (r *remote) canaries(but wire.Resource) {
	for _, res := range wire.Resources() {
		if res != but {
			r.put(wire.SyncedKey(r.name, res, r.cached), []byte("now"))
		}
	}
}

func (w *world) exportsAre(want ...string) {
	w.t.Helper()
	now := func() (all []string) {
		for e := range w.view.Services.ServiceExports().All(w.db.ReadTxn()) {
			all = append(all, e.Key())
		}
		return all
	}
	w.until("the exports", func() bool { return slices.Equal(now(), want) }, func() string { return "they are " + strings.Join(now(), ", ") })
}

// wellWithout waits until the cluster is ready, and checks that it has no message and no exports yet.
func (r *remote) wellWithout() {
	r.w.t.Helper()
	r.w.inState(r.name, remotecluster.Ready)
	r.converges()
	st := r.w.mustStatus(r.name)
	if s := st.Families[wire.ServiceExports]; st.Message != "" || st.Failures > 0 || s.Synced || s.Count > 0 {
		r.w.t.Errorf("%s: %q, %d failures, %+v", r.name, st.Message, st.Failures, s)
	}
	if ok, reasons := r.w.mesh.Ready(); !ok {
		r.w.t.Errorf("the mesh waits: %v", reasons)
	}
}

// TestExportsComeAndGo: exports of a cluster's own etcd, of a copy, and of our own cluster are added and removed.
func TestExportsComeAndGo(t *testing.T) {
	t.Parallel()
	yes := true
	w, own, file := ownCluster(t)
	own.fill(0, 5)
	own.export("web")
	must(t, copyFile(own.etcd.ConfigFile(t), file))
	c1 := w.remote("c1", 1)
	c1.announce(&yes)
	c1.canaries("")
	gone := c1.export("web")
	c1.export("api")
	c2 := &remote{w: w, name: "c2", id: 2, cached: true, etcd: c1.etcd, kv: c1.kv}
	c2.fill(0, 5)
	c2.announce(&yes)
	c2.export("web")
	for _, r := range []*remote{c1, c2} {
		r.join()
		w.inState(r.name, remotecluster.Ready)
	}
	w.exportsAre("c1/ns/api", "c1/ns/web", "c2/ns/web", "own/ns/web")
	c1.delete(gone)
	w.exportsAre("c1/ns/api", "c2/ns/web", "own/ns/web")
	c1.announce(nil)
	w.exportsAre("c2/ns/web", "own/ns/web")
	must(t, os.Remove(filepath.Join(w.dir, "c2")))
	w.exportsAre("own/ns/web")
	w.inState("c1", remotecluster.Ready)
	w.localIs(remotecluster.Ready)
}

// TestNobodyWaitsForExports: a cluster that announces exports, but has neither their canary nor an export, becomes
// ready like one that does not announce them.
func TestNobodyWaitsForExports(t *testing.T) {
	t.Parallel()
	yes := true
	w := newWorld(t)
	c1 := w.remote("c1", 1)
	c1.announce(&yes)
	c1.canaries(wire.ServiceExports)
	c1.join()
	c1.wellWithout()
	c1.export("web")
	c1.canaries("")
	w.exportsAre("c1/ns/web")
	w.inState("c1", remotecluster.Ready)
}
