package findings

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestAddressConflictsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claims(claim("10.0.0.1/32", 3), claim("10.0.0.2/32", 3))
	w.look()
	w.expectConflicts("nobody else claims them")
	w.claims(claim("10.0.0.1/32", 2))
	w.look()
	w.expectConflicts("two clusters", "ip/10.0.0.1/32 c2,c3 since 2s")
	w.expectEvents("two clusters", "c2,c3 conflict: 10.0.0.1/32 is claimed by c2 and c3; c2 counts (cluster ID 2 precedes 3)")
	w.look()
	w.claims(claim("10.0.0.1/32", 3))
	w.look()
	w.expectEvents("nothing new")
	w.claims(claim("10.0.0.1/32", 1))
	w.look()
	w.expectConflicts("a third one", "ip/10.0.0.1/32 c1,c2,c3 since 2s")
	w.expectEvents("a third one", "c1,c2,c3 conflict-changed: 10.0.0.1/32 is claimed by c1, c2 and c3; c1 counts")
	w.ips.Apply([]ipcache.Op{{Old: claim("10.0.0.1/32", 1)}, {Old: claim("10.0.0.1/32", 3)}})
	w.look()
	w.expectConflicts("one is left")
	w.expectEvents("one is left", "c1,c2,c3 conflict-resolved: no longer in conflict: 10.0.0.1/32")
	w.claims(claim("10.0.0.1/32", 3))
	w.ips.Apply([]ipcache.Op{{Old: claim("10.0.0.1/32", 3)}})
	w.look()
	w.expectEvents("came and went between two looks")
}

func TestConflictsHaveTheKindOfTheirClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of := func(kind ipcache.Kind, id uint32) *ipcache.Entry {
		return ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.MustParsePrefix("10.0.0.0/24"), Cluster: &ipcache.Claimant{Name: fmt.Sprintf("c%d", id), ID: id}, Kind: kind, Name: "n",
		})
	}
	w.claims(of(ipcache.KindPodCIDR, 2), of(ipcache.KindPodCIDR, 3))
	w.look()
	w.expectConflicts("two pod networks, which their nodes tell")
	w.claims(of(ipcache.KindCIDR, 4))
	w.look()
	w.expectConflicts("and something else", "claim/c4/foreign-network c4,c2 since 2s", "ip/10.0.0.0/24 c4,c2,c3 since 2s")
	w.ips.Apply([]ipcache.Op{
		{Old: of(ipcache.KindCIDR, 4)},
		{Old: of(ipcache.KindPodCIDR, 2)},
		{Old: of(ipcache.KindPodCIDR, 3)},
		{New: of(ipcache.KindNode, 2)},
		{New: of(ipcache.KindHealth, 3)},
	})
	w.look()
	w.expectConflicts("addresses of nodes", "node-ip/10.0.0.0/24 c2,c3 since 3s")
}

func TestAFloodOfConflictsIsOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []*ipcache.Entry
	for i := range 50 {
		p := fmt.Sprintf("10.0.0.%d/32", i)
		all = append(all, claim(p, 2), claim(p, 3))
	}
	w.claims(all...)
	w.look()
	w.expectEvents("a network given twice", "c2,c3 conflict: 50 new conflicts of kind ip, such as: 10.0.0.0/32 is claimed by c2 and c3")
	if n := w.found.Conflicts().NumObjects(w.db.ReadTxn()); n != 50 {
		t.Errorf("%d conflicts are listed, want 50", n)
	}
}

// TestWhatPassedByIsFoundAgain: after more changes than the cache keeps, the conflicts still match the claims.
func TestWhatPassedByIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claims(claim("10.0.0.1/32", 2), claim("10.0.0.1/32", 3), claim("10.0.0.3/32", 2), claim("10.0.0.3/32", 3))
	w.look()
	w.expectConflicts("before", "ip/10.0.0.1/32 c2,c3 since 1s", "ip/10.0.0.3/32 c2,c3 since 1s")
	w.ips.Apply([]ipcache.Op{{Old: claim("10.0.0.1/32", 2)}})
	w.claims(claim("10.0.0.2/32", 4), claim("10.0.0.2/32", 5))
	for i := range 40_000 {
		w.ips.Apply([]ipcache.Op{{New: ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.MustParsePrefix("10.9.9.9/32"), Cluster: &ipcache.Claimant{Name: "c2", ID: 2}, Identity: uint32(i),
		})}})
	}
	if _, held := w.ips.Since(w.watch.claims.revision, nil); held {
		t.Fatal("the cache still holds all of it: the test shows nothing")
	}
	w.look()
	w.look() // the shared snapshot may have been older than the last changes
	w.expectConflicts("after", "ip/10.0.0.2/32 c4,c5 since 2s", "ip/10.0.0.3/32 c2,c3 since 1s")
}

func TestClustersHaveAHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := remotecluster.Status{Name: "c2", State: remotecluster.Connecting, Message: "connecting", ConfigFile: "/mesh/c2", Endpoints: []string{"https://c2:2379"}}
	step := func(what string, change func(), want ...string) {
		t.Helper()
		change()
		w.mesh.SetClusters(c)
		w.look()
		w.expectEvents(what, want...)
	}
	sources := func(rejected int) map[wire.Resource]remotecluster.FamilyStatus {
		return map[wire.Resource]remotecluster.FamilyStatus{wire.Nodes: {
			Synced: true, Count: 5, Rejected: rejected, Rejections: map[wire.Reason]int{wire.ReasonMalformed: rejected},
		}}
	}
	step("a file appears", func() {}, "c2 cluster-added: client file /mesh/c2")
	step("it fails", func() { c.Failures, c.LastError = 1, "connection refused" }, "c2 cluster-error: connection refused")
	step("again", func() { c.Failures = 2 })
	step("another way", func() { c.Failures, c.LastError = 3, "certificate expired" }, "c2 cluster-error: certificate expired")
	read := func(port int) string {
		return fmt.Sprintf("read tcp 10.0.0.1:%d->10.0.0.2:2379: connection reset by peer", port)
	}
	step("a third one", func() { c.Failures, c.LastError = 4, read(54321) }, "c2 cluster-error: "+read(54321))
	step("the same from another port", func() { c.Failures, c.LastError = 5, read(54322) })
	step("connected", func() {
		c.Connected, c.ConnectedSince, c.EtcdClusterID, c.State = true, epoch, "aa", remotecluster.Syncing
	},
		"c2 cluster-connected: connected to https://c2:2379", "c2 cluster-syncing: syncing, was connecting")
	step("ready", func() { c.ID, c.State, c.Message, c.Families = 2, remotecluster.Ready, "", sources(0) }, "c2 cluster-ready: ready, was syncing")
	step("rejected", func() { c.Families = sources(2) }, "c2 entries-rejected: 2 of its nodes refused: 2 for "+string(wire.ReasonMalformed))
	step("more of them", func() { c.Families = sources(3) })
	step("mended", func() { c.Families = sources(0) }, "c2 entries-accepted: its nodes are no longer refused")
	step("a flap between two looks", func() { c.ConnectedSince, c.Failures, c.LastLoss = epoch.Add(time.Second), 6, "connection reset" },
		"c2 cluster-disconnected: connection reset", "c2 cluster-connected: ")
	step("another etcd, another ID", func() { c.EtcdClusterID, c.ID = "bb", 7 },
		"c2 etcd-changed: another etcd answers: its cluster ID was aa and is bb", "c2 cluster-id-changed: the cluster's ID was 2 and is 7")
	step("without an ID", func() { c.ID = 0 })
	step("for a while", func() {})
	step("a third ID", func() { c.ID = 8 }, "c2 cluster-id-changed: the cluster's ID was 7 and is 8")
	step("without an ID again", func() { c.ID = 0 })
	step("with the same one", func() { c.ID = 8 })
	step("lost", func() {
		c.Connected, c.State, c.Message, c.LastLoss = false, remotecluster.Degraded, "not connected", "timeout"
	},
		"c2 cluster-disconnected: timeout", "c2 cluster-degraded: degraded, was ready: not connected")
	step("its file is emptied", func() { c.Notices = []remotecluster.Notice{{Code: codes.ClientFileBroken, Message: "cannot be used"}} }, "c2 client-file-broken: cannot be used")
	step("and stays so", func() {})
	step("its file is right again", func() { c.Notices = nil }, "c2 client-file-well: /mesh/c2 is a client file again")
	step("too long", func() { c.Withheld = epoch }, "c2 backends-withheld: ")
	step("back", func() { c.Withheld = time.Time{} }, "c2 backends-back: ")
	for _, state := range []remotecluster.State{remotecluster.Failed, remotecluster.Connecting, remotecluster.Removing} {
		step("another state", func() { c.State = state }, "c2 cluster-"+string(state))
	}
	w.mesh.SetClusters()
	w.look()
	w.expectEvents("the file is gone", "c2 cluster-removed: ")
	codestest.Reached(t, codes.Events, w.reached("")...)
}

// TestWhoDoesNotLeadKnowsNoClusters: a replica that does not lead has no clusters, and does not report them as removed.
func TestWhoDoesNotLeadKnowsNoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leads := true
	w.watch.Leads = func() bool { return leads }
	c := remotecluster.Status{Name: "c2", State: remotecluster.Ready, Connected: true}
	w.mesh.SetClusters(c, remotecluster.Status{Name: "c5", State: remotecluster.Connecting, Connected: true, IDConflict: &remotecluster.IDConflict{ID: 2, Holder: "c2"}})
	w.ignore(clustermesh.Ignored{File: "/mesh/Bad", Reason: "no name"})
	w.look()
	w.expectConflicts("leading", "cluster-id/2 c2,c5 since 1s")
	w.expectEvents("leading", "c2,c5 conflict: ", "c2 cluster-added: ", "c2 cluster-connected", "c2 cluster-ready", "c5 cluster-added: ", "c5 cluster-connected", " file-ignored")
	leads = false
	w.mesh.SetClusters()
	w.ignore()
	w.look()
	w.expectConflicts("not any more")
	w.expectEvents("not any more", "c2,c5 conflict-resolved: ")
	leads = true
	w.mesh.SetClusters(c)
	w.ignore(clustermesh.Ignored{File: "/mesh/Bad", Reason: "no name"})
	w.look()
	w.expectEvents("again", "c2 cluster-added: ", "c2 cluster-connected", "c2 cluster-ready")
}

// TestAClusterThatBeginsBadly: errors from before the first look are reported.
func TestAClusterThatBeginsBadly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mesh.SetClusters(
		remotecluster.Status{Name: "c2", State: remotecluster.Failed, Message: "no YAML", LastError: "no YAML", Failures: 1},
		remotecluster.Status{Name: "c3", State: remotecluster.Connecting, LastError: "refused", Failures: 2},
	)
	w.look()
	w.expectEvents("both", "c2 cluster-added: ", "c2 cluster-failed: failed, was connecting: no YAML", "c3 cluster-added: ", "c3 cluster-error: refused")
}

func TestTheOwnClusterHasAHistoryToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := remotecluster.Status{Name: "own", ID: 9, State: remotecluster.Connecting, ConfigFile: "/etc/own"}
	w.mesh.Set(func(is *fakemesh.Facts) { is.Own = &own })
	w.mesh.SetClusters(remotecluster.Status{Name: "zone", State: remotecluster.Connecting, ConfigFile: "/mesh/zone"})
	w.look()
	w.expectEvents("both", "zone cluster-added: client file /mesh/zone", "own cluster-added: the own cluster is read from its kvstore, client file /etc/own")
}

func TestOldEventsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range MaxEvents + 50 {
		w.mesh.SetClusters(remotecluster.Status{Name: fmt.Sprint("c", i), State: remotecluster.Connecting})
		w.look()
	}
	txn := w.db.ReadTxn()
	if n := w.found.Events().NumObjects(txn); n != MaxEvents {
		t.Errorf("%d events are kept, want %d", n, MaxEvents)
	}
	for e := range w.found.Events().All(txn) {
		if last := uint64(2*(MaxEvents+50) - 1); e.ID != last-MaxEvents+1 { // only the last ones are kept
			t.Errorf("event %d of %d is the oldest", e.ID, last)
		}
		break
	}
}

func TestRunLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan error, 1)
	ctx, cancel := contextOf(t)
	go func() { done <- w.watch.Run(ctx) }()
	w.claims(claim("10.0.0.1/32", 2), claim("10.0.0.1/32", 3))
	w.mesh.SetClusters(remotecluster.Status{Name: "c2", State: remotecluster.Connecting})
	for {
		txn := w.db.ReadTxn()
		_, conflict := w.found.Conflicts().AllWatch(txn)
		_, event := w.found.Events().AllWatch(txn)
		if w.found.Conflicts().NumObjects(txn) == 1 && w.found.Events().NumObjects(txn) == 2 {
			break
		}
		select {
		case <-conflict:
		case <-event:
		case <-ctx.Done():
			t.Fatal("nothing was found")
		}
	}
	cancel()
	<-done
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(waittest.Context(t))
}
