package clustermesh

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// ownNodesWorld is the source of the own cluster's nodes, and the view that it updates.
type ownNodesWorld struct {
	t      *testing.T
	db     *statedb.DB
	view   *Ingest
	mem    *memory.Store
	reader remotecluster.Consumer
	source remotecluster.Family
}

func newOwnNodes(t *testing.T, delay time.Duration) *ownNodesWorld {
	t.Helper()
	w := &ownNodesWorld{t: t, mem: memory.New()}
	w.db, w.view = newView(t, ipcache.New(ipcache.Rules{}))
	if w.view.NodeDelay != 30*time.Second {
		t.Errorf("the delay is %s unless it is set", w.view.NodeDelay)
	}
	w.view.NodeDelay = delay
	w.reader = w.view.Consumer(nil)(Target{Name: "own", Own: true, Log: slog.New(slog.DiscardHandler)})
	w.source = w.reader.Families()[0]
	return w
}

// run follows the nodes until the returned function is called.
func (w *ownNodesWorld) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error {
		return w.source.Run(ctx, store.Session{
			Client: w.mem, Prefix: wire.Nodes.Prefix("own", false),
			Expect: wire.Expect{Cluster: "own", ClusterID: 250, LocalID: 250, Own: true},
		})
	})
	g.Go(func() error { w.reader.Follow(ctx); return nil })
	return func() {
		cancel()
		_ = g.Wait()
	}
}

func (w *ownNodesWorld) register(name, address string) {
	n := wire.Node{Name: name, Cluster: "own", ClusterID: 250, IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.ParseIP(address)}}}
	w.mem.Set(n.Key(), string(n.Encode()))
}

func (w *ownNodesWorld) vanish(name string) { w.mem.Unset(wire.Nodes.Key("own", false, name)) }

// parts returns how many parts of the node are in the view: the node itself, and the claim on its address.
func (w *ownNodesWorld) parts(name, address string) (n int) {
	if _, _, found := w.view.Nodes.Table().Get(w.db.ReadTxn(), nodes.ByName("own", name)); found {
		n++
	}
	if w.view.IPs.LookupWinner(netip.MustParseAddr(address)) != nil {
		n++
	}
	return n
}

func (w *ownNodesWorld) inView(name, address string) bool { return w.parts(name, address) == 2 }
func (w *ownNodesWorld) gone(name, address string) bool   { return w.parts(name, address) == 0 }

func (w *ownNodesWorld) until(what string, ok func() bool) {
	w.t.Helper()
	waittest.Until(w.t, what, ok)
}

// known waits until the source has this number of nodes.
func (w *ownNodesWorld) known(n int) {
	w.t.Helper()
	w.until("the source", func() bool { st := w.source.Status(); return st.Synced && st.Count == n })
}

// TestANodeOfOursThatRegistersAgainCausesNothing: a node whose key is written again before its deletion counts was
// never removed: no table and no address is written.
func TestANodeOfOursThatRegistersAgainCausesNothing(t *testing.T) {
	t.Parallel()
	w := newOwnNodes(t, time.Hour)
	w.register("a", "172.16.0.1")
	defer w.run()()
	w.until("the node", func() bool { return w.inView("a", "172.16.0.1") })
	table, addresses := w.view.Nodes.Table().Revision(w.db.ReadTxn()), w.view.IPs.Revision()
	for range 3 {
		w.vanish("a")
		w.known(0)
		w.register("a", "172.16.0.1")
		w.known(1)
	}
	if now := w.view.Nodes.Table().Revision(w.db.ReadTxn()); now != table {
		t.Errorf("the table of nodes was written: %d, then %d", table, now)
	}
	if now := w.view.IPs.Revision(); now != addresses {
		t.Errorf("addresses were written: %d, then %d", addresses, now)
	}
	// A node that registers again with other contents is changed at once.
	w.vanish("a")
	w.known(0)
	w.register("a", "172.16.0.2")
	w.until("the other address", func() bool { return w.inView("a", "172.16.0.2") })
	if w.view.IPs.LookupWinner(netip.MustParseAddr("172.16.0.1")) != nil {
		t.Error("its address of before is still there")
	}
}

func TestANodeOfOursThatStaysAwayGoesLater(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	w := newOwnNodes(t, delay)
	w.register("a", "172.16.0.1")
	w.register("b", "172.16.0.2")
	defer w.run()()
	w.until("both", func() bool { return w.inView("a", "172.16.0.1") && w.inView("b", "172.16.0.2") })
	vanished := time.Now()
	w.vanish("a")
	w.until("it to be gone", func() bool { return w.gone("a", "172.16.0.1") })
	if took := time.Since(vanished); took < delay {
		t.Errorf("it was gone after %s", took)
	}
	if !w.inView("b", "172.16.0.2") {
		t.Error("another one is gone")
	}
}

// TestANodeOfOursThatVanishesInAStopGoesAfterIt: a node whose key was deleted while the source was stopped is removed
// with the same delay. The stop withdraws nothing.
func TestANodeOfOursThatVanishesInAStopGoesAfterIt(t *testing.T) {
	t.Parallel()
	w := newOwnNodes(t, 100*time.Millisecond)
	w.register("a", "172.16.0.1")
	w.register("b", "172.16.0.2")
	stop := w.run()
	w.until("both", func() bool { return w.inView("a", "172.16.0.1") && w.inView("b", "172.16.0.2") })
	stop()
	w.vanish("a")
	if !w.inView("a", "172.16.0.1") {
		t.Error("a stop has withdrawn it")
	}
	defer w.run()()
	w.until("it to be gone", func() bool { return w.gone("a", "172.16.0.1") })
}

// TestADrainOfOurNodesIsNotDelayed: a drain removes at once the present nodes, and those whose deletion does not count
// yet.
func TestADrainOfOurNodesIsNotDelayed(t *testing.T) {
	t.Parallel()
	w := newOwnNodes(t, time.Hour)
	w.register("a", "172.16.0.1")
	w.register("b", "172.16.0.2")
	stop := w.run()
	w.until("both", func() bool { return w.inView("a", "172.16.0.1") && w.inView("b", "172.16.0.2") })
	w.vanish("a")
	w.known(1)
	stop()
	w.source.Drain()
	if !w.gone("a", "172.16.0.1") || !w.gone("b", "172.16.0.2") {
		t.Error("something is left")
	}
}

// TestOurNodesAreKnownAsOfTheFirstDeletion: as long as a node is shown whose key is deleted, our nodes are known as of a
// time before that, although the kvstore answers.
func TestOurNodesAreKnownAsOfTheFirstDeletion(t *testing.T) {
	t.Parallel()
	w := newOwnNodes(t, time.Hour)
	w.register("a", "172.16.0.1")
	defer w.run()()
	w.until("the node", func() bool { return w.inView("a", "172.16.0.1") })
	confirmed := func(since time.Time) bool {
		w.source.Observe(kvstore.Probe{At: time.Now(), Head: w.mem.Position()})
		return w.source.Status().AsOf.After(since)
	}
	w.until("an answer", func() bool { return confirmed(time.Now().Add(-time.Minute)) })
	vanished := time.Now()
	w.vanish("a")
	w.known(0)
	w.until("an answer", func() bool { return confirmed(vanished) })
	st := w.source.Status()
	if at := st.KnownAsOf(); at.IsZero() || at.After(vanished) {
		t.Errorf("known as of %s, and it is shown although it vanished at %s", at, vanished)
	}
	w.register("a", "172.16.0.1")
	w.known(1)
	st = w.source.Status()
	if at := st.KnownAsOf(); !at.After(vanished) {
		t.Errorf("known as of %s, although nothing is held back any more", at)
	}
}
