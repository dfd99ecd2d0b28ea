package clustermesh

import (
	"fmt"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// until waits for a condition.
func (w *world) until(what string, ok func() bool, detail ...func() string) {
	w.t.Helper()
	waittest.Until(w.t, what, ok, append(detail, func() string {
		text := ""
		for _, c := range w.mesh.Clusters() {
			text += fmt.Sprintf("%s: %s %q, last error %q\n", c.Name, c.State, c.Message, c.LastError)
		}
		return text
	})...)
}

func (w *world) status(name string) (remotecluster.Status, bool) {
	for _, c := range w.mesh.Clusters() {
		if c.Name == name {
			return c, true
		}
	}
	return remotecluster.Status{}, false
}

// gone waits until a cluster is no longer in the mesh.
func (w *world) gone(name string) {
	w.t.Helper()
	w.until(name+" to be gone", func() bool { _, there := w.status(name); return !there })
}

func (w *world) mustStatus(name string) remotecluster.Status {
	w.t.Helper()
	st, there := w.status(name)
	if !there {
		w.t.Fatalf("there is no cluster %s", name)
	}
	return st
}

func (w *world) inState(name string, s remotecluster.State) {
	w.t.Helper()
	w.until(name+" to be "+string(s), func() bool { st, ok := w.status(name); return ok && st.State == s })
}

// quiet waits until a snapshot of the addresses includes everything that was written.
func (w *world) quiet() {
	w.t.Helper()
	last := w.view.IPs.Revision()
	w.until("a snapshot of the end", func() bool { return w.view.IPs.Snapshot().Revision() == last })
}

// fingerprint changes with every event about the cluster that followers of the tables would see: it contains the
// revision of each object, and the entries themselves.
func (r *remote) fingerprint() map[any]any {
	f := map[any]any{}
	txn := r.w.db.ReadTxn()
	for n, rev := range nodes.ByCluster(txn, r.w.view.Nodes.Table(), r.name) {
		f[n] = rev
	}
	for s, rev := range services.ByCluster(txn, r.w.view.Services.Exported(), r.name) {
		f[s] = rev
	}
	for id, rev := range identities.ByCluster(txn, r.w.view.Identities.Table(), r.name) {
		f[id] = rev
	}
	for e := range r.w.view.IPs.Snapshot().From(netip.Prefix{}) {
		if e.Cluster().Name == r.name {
			f[e] = true
		}
	}
	return f
}
