package view

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAViewIsOneMoment: during concurrent changes, a view equals the result of the changes up to its position, and each
// change has the object as it was before.
func TestAViewIsOneMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var runs, writers sync.WaitGroup
	defer writers.Wait()
	defer runs.Wait()
	defer cancel()
	runs.Go(func() { _ = f.feed.run(ctx) }) // its error is that of ctx
	changeNodes := func() {
		for i := range 1000 {
			n := &nodes.Node{Cluster: "c2", Name: fmt.Sprint(i % 3), BootID: fmt.Sprint(i)}
			ch := store.Change[nodes.Node]{New: n}
			if i%2 == 0 {
				ch = store.Change[nodes.Node]{Old: n}
			}
			f.nodes.Apply([]store.Change[nodes.Node]{ch})
		}
	}
	changeAddresses := func() {
		for i := range 15_000 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 3)})
			e := ipcache.NewEntry(ipcache.Spec{Prefix: netip.PrefixFrom(a, 32), Cluster: &ipcache.Claimant{Name: "c2", ID: 2}, Identity: uint32(i)})
			op := ipcache.Op{New: e}
			if i%2 == 0 {
				op = ipcache.Op{Old: e}
			}
			f.ips.Apply([]ipcache.Op{op})
		}
	}
	known := make(map[string]any)
	var position uint64
	page := make([]feedEntry, 0, pageSize)
	for i := range 200 {
		if i%10 == 0 {
			writers.Wait() // there are no more changes than the feed keeps
			writers.Go(changeNodes)
			writers.Go(changeAddresses)
		}
		v := f.Snapshot(ctx)
		for position < v.Position {
			entries, reached, _, held := f.feed.after(position, nil, page[:0:min(pageSize, v.Position-position)])
			if !held {
				t.Fatal("changes are missing")
			}
			for _, e := range entries {
				name := fmt.Sprintf("%T", e.object)
				switch o := e.object.(type) {
				case *nodes.Node:
					name += o.Key()
				case *ipcache.Entry:
					name += o.Prefix().String()
				default:
					continue
				}
				if known[name] != e.before {
					t.Fatalf("%s was %v, and is said to have been %v", name, known[name], e.before)
				}
				if known[name] = e.object; e.deleted {
					delete(known, name)
				}
			}
			position = reached
		}
		there := make(map[string]any)
		for n := range f.Nodes.Table().All(v.Txn) {
			there[fmt.Sprintf("%T", n)+n.Key()] = n
		}
		for e := range v.IPs.From(netip.Prefix{}) {
			there[fmt.Sprintf("%T", e)+e.Prefix().String()] = e
		}
		if !maps.Equal(known, there) {
			t.Fatalf("the changes up to %d make\n%v\nthe view is\n%v", position, known, there)
		}
	}
}

// TestPolledResourcesSayWhatChanged: only real changes are reported. A fresher copy is none, and neither is the
// evidence of the policy, which changes with each probe.
func TestPolledResourcesSayWhatChanged(t *testing.T) {
	t.Parallel()
	clusters := []remotecluster.Status{readyCluster("c2", 2)}
	p := &polled[remotecluster.Status]{all: func() []remotecluster.Status { return clusters }, name: clusterKey, steady: steadyCluster, cost: clusterCost}
	now := epoch
	drain := func() (names []string) {
		now = now.Add(2 * polledInterval)
		p.drain(round{now: now}, func(e feedEntry, _ int) {
			c := e.object.(remotecluster.Status)
			names = append(names, fmt.Sprintf("%s %s %t", c.Name, c.State, e.deleted))
		})
		return names
	}
	check := func(what string, want ...string) {
		t.Helper()
		if got := drain(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("first", "c2 ready false")
	clusters = []remotecluster.Status{readyCluster("c2", 2)}
	clusters[0].LastEvent = now
	source := clusters[0].Families[wire.IPs]
	source.Freshness.AsOf = now.Add(time.Second)
	clusters[0].Families[wire.IPs] = source
	clusters[0].Forecast.Evidence.AsOf, clusters[0].Forecast.Evidence.Heartbeat = now, now
	check("fresher")
	clusters = []remotecluster.Status{readyCluster("c2", 2)}
	clusters[0].Forecast.State = disconnect.Demote
	check("demoted", "c2 ready false")
	clusters = []remotecluster.Status{readyCluster("c2", 2), connectingCluster("c3")}
	clusters[0].State = remotecluster.Degraded
	check("worse", "c2 degraded false", "c3 connecting false")
	clusters = clusters[1:]
	check("gone", "c2 degraded true")
}

// TestWhoWasShownSomethingSeesItsEnd: a client that received a state receives its end. This holds also if the feed did
// not look before that state or during it, and if only the passing of time caused the change.
func TestWhoWasShownSomethingSeesItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	set := func(s remotecluster.FreshnessState) {
		c := readyCluster("c2", 2)
		for r, src := range c.Families {
			src.Freshness.State = s
			c.Families[r] = src
		}
		f.mesh.clusters = []remotecluster.Status{c} // with the same revision
	}
	set(remotecluster.FreshnessSynced)
	f.Position()
	set(remotecluster.FreshnessStale)
	shown := f.Snapshot(t.Context(), Clusters)
	if got := shown.Clusters()[0].Families[wire.IPs].Freshness.State; got != remotecluster.FreshnessStale {
		t.Fatalf("shown is %q", got)
	}
	set(remotecluster.FreshnessSynced)
	f.feed.take(f.Now().Add(2*polledInterval), true)
	entries, _, _, held := f.feed.after(shown.Position, []int{f.indexOf(Clusters)}, make([]feedEntry, 0, 10))
	if !held || len(entries) == 0 {
		t.Fatalf("nothing came since (held %t)", held)
	}
	last := entries[len(entries)-1].object.(remotecluster.Status)
	if got := last.Families[wire.IPs].Freshness.State; got != remotecluster.FreshnessSynced {
		t.Errorf("the last one is %q", got)
	}
}

// TestWhoReadsSomethingSeesItsEnd: an object that was read with ReadTxn has an event of its deletion, also if it was created
// and deleted between two looks of the feed.
func TestWhoReadsSomethingSeesItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	position := f.Position()
	n := &nodes.Node{Cluster: "c1", Name: "n"}
	f.nodes.Apply(become(nil, n))
	f.ReadTxn()
	f.nodes.Apply(become(n, nil))
	f.Position()
	entries, _, _, _ := f.feed.after(position, []int{f.indexOf(Nodes)}, make([]feedEntry, 0, 10))
	if len(entries) != 2 || !entries[1].deleted {
		t.Errorf("the changes are %+v", entries)
	}
}

// FuzzPosition: a token decodes to the position it was made from, and a token of another agent is not accepted as ours.
func FuzzPosition(f *testing.F) {
	f.Add("-5", uint64(5))
	f.Add("x-5", uint64(0))
	f.Add("-", ^uint64(0))
	f.Add("-partial", uint64(1))
	f.Fuzz(func(t *testing.T, token string, position uint64) {
		ours, theirs := newFeed(nil, nil, nil, RingSize, OldBytes), newFeed(nil, nil, nil, RingSize, OldBytes)
		if got, known := ours.position(ours.token(position)); !known || got != position {
			t.Fatalf("position %d becomes %d, %v", position, got, known)
		}
		for _, foreign := range []string{theirs.token(position), ours.partial(), token} {
			if got, known := ours.position(foreign); known {
				t.Fatalf("%q is taken for position %d", foreign, got)
			}
		}
		number, dash := strings.CutPrefix(token, "-")
		if got, known := ours.position(ours.boot + token); known && (!dash || strings.TrimLeft(number, "0") != strings.TrimLeft(strconv.FormatUint(got, 10), "0")) {
			t.Fatalf("%q is taken for position %d", token, got)
		}
	})
}
