package clustermesh

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// revisions returns the revisions of all tables: each write increases one of them.
func (w *world) revisions() map[string]uint64 {
	txn := w.db.ReadTxn()
	return map[string]uint64{
		"nodes":           w.view.Nodes.Table().Revision(txn),
		"services":        w.view.Services.Exported().Revision(txn),
		"endpoint slices": w.view.Services.Slices().Revision(txn),
		"global services": w.view.Services.Global().Revision(txn),
		"identities":      w.view.Identities.Table().Revision(txn),
		"addresses":       w.view.IPs.Revision(),
	}
}

// TestAReconnectWritesNothing: while a cluster of many addresses was unreachable, nothing changed. After the
// reconnect no table is written, neither when the same server continues, nor when everything has to be listed from
// another one.
func TestAReconnectWritesNothing(t *testing.T) {
	t.Parallel()
	c := meshtest.Clusters(1)[0]
	c.Name = "c1"
	c.Nodes, c.Services, c.Identities, c.Addresses = 100, 100, 500, 10_000
	if testing.Short() {
		c.Addresses /= 10
	}
	c1 := meshtest.Mesh(t, sim.Options{Plain: true}, c).Clusters()[0]
	w := newWorld(t, func(p *Params) {
		backoff := etcdOf(p).Timings.BackoffMax
		*etcdOf(p) = etcd.DefaultOptions()
		etcdOf(p).Timings.BackoffMax, etcdOf(p).Timings.ProbeInterval = backoff, 500*time.Millisecond
	})
	must(t, c1.WriteClientFiles(w.dir))
	// synced waits until every resource is confirmed as of a time after this one.
	synced := func(after time.Time) (st remotecluster.Status) {
		t.Helper()
		w.until("c1 to be synced", func() bool {
			var known bool
			st, known = w.status("c1")
			fresh := known && st.State == remotecluster.Ready && !st.ConnectedSince.IsZero() && len(st.Families) > 0
			for _, s := range st.Families {
				fresh = fresh && s.Freshness.AsOf.After(after)
			}
			return fresh
		})
		return st
	}
	first := synced(time.Time{})
	if n := w.view.IPs.Len(); n < c.Addresses {
		t.Fatalf("%d addresses, the cluster has %d", n, c.Addresses)
	}
	before := w.revisions()

	// When the server restarts at once, its connections may still be in use: wait until the session has ended, so that
	// a new one can be observed. A failed probe alone does not end it, although the status then is not connected.
	must(t, c1.Kill())
	w.until("the session to have ended", func() bool { st, _ := w.status("c1"); return st.Failures > first.Failures })
	must(t, c1.Start(t.Context()))
	resumed := synced(time.Now())
	if resumed.EtcdClusterID != first.EtcdClusterID || !resumed.ConnectedSince.After(first.ConnectedSince) {
		t.Fatalf("not a new session with the same etcd: %s since %s, now %s since %s",
			first.EtcdClusterID, first.ConnectedSince, resumed.EtcdClusterID, resumed.ConnectedSince)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a restarted server caused writes (-before +after):\n%s", diff)
	}

	must(t, c1.Replace(t.Context()))
	if other := synced(time.Now()); other.EtcdClusterID == first.EtcdClusterID {
		t.Fatalf("the session is not with the other etcd, but with %s", other.EtcdClusterID)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("another server with the same contents caused writes (-before +after):\n%s", diff)
	}

	// A change increases the revisions.
	_, err := c1.Churn(t.Context(), 200)
	must(t, err)
	synced(time.Now())
	if after := w.revisions(); before["addresses"] == after["addresses"] {
		t.Errorf("200 changes moved no revision of addresses: %v", after)
	}
}
