package remotecluster

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAPanicEndsWithItsCluster: a panic is shown in the status, counted, and logged once although its text differs each
// time. After its cause is removed, everything is applied.
func TestAPanicEndsWithItsCluster(t *testing.T) {
	t.Parallel()
	log := new(waittest.Output)
	b := newBench(t, func(p *Params) { p.Log = slog.New(slog.NewTextHandler(log, nil)) })
	number := 0 // written by the goroutine of the nodes' source
	b.before = func(_ wire.Resource, changes []store.Change[string]) {
		for _, ch := range changes {
			if ch.New != nil && strings.HasPrefix(*ch.New, "mine") {
				number++
				panic(fmt.Sprintf("a mistake in the code, number %d", number))
			}
		}
	}
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.put(wire.Nodes, false, "n2", "mine")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.run()
	st := b.eventually("several panics", func(st Status) bool { return st.Panics >= 3 && st.Code == codes.InternalError })
	if st.Ready || !strings.Contains(st.Message, "a mistake in the code") || !strings.Contains(st.LastError, "internal error") {
		t.Errorf("%s %q, last error %q", st.State, st.Message, st.LastError)
	}
	if lines, stacks := log.Count("Internal error: the agent starts"), log.Count("fault_test.go"); lines != 1 || stacks == 0 {
		t.Errorf("%d lines of the log, %d places in the code:\n%s", lines, stacks, log)
	}
	b.put(wire.Nodes, false, "n2", "well")
	b.holds(map[string]string{"nodes/n1": "x of 2", "nodes/n2": "well of 2", "ips/10.0.0.1": "y of 2"})
	b.eventually("everything is followed", func(st Status) bool { return st.Ready })
}

// TestFewPanicsAreLogged: when the known places are full, other places are logged once per minute.
func TestFewPanicsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, logged := newPlaces(), 0
		for round := range 10 {
			for i := range 10 * maxPlaces {
				if s.isNew(fmt.Sprint("function:", i)) {
					logged++
				}
			}
			if want := maxPlaces + round + 1; logged != want {
				t.Errorf("%d are logged after %d minutes, want %d", logged, round, want)
			}
			<-time.After(otherPlaces)
		}
		if len(s.known) > maxPlaces {
			t.Errorf("%d places are remembered", len(s.known))
		}
	})
}

// TestAPanicWhileRemovingIsRepeated: the removal is repeated until all entries are removed.
func TestAPanicWhileRemovingIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	failures := 2
	b.before = func(_ wire.Resource, changes []store.Change[string]) {
		if failures > 0 && changes[0].New == nil {
			failures--
			panic("a mistake in the code")
		}
	}
	b.configure(plain(2))
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.run()
	b.holds(map[string]string{"ips/10.0.0.1": "y of 2"})
	b.stop()
	waittest.Must(t, b.cluster.Drain(t.Context()))
	b.holds(map[string]string{})
}

// TestABrokenProtocolIsSaid: it stays in the status although the next session works.
func TestABrokenProtocolIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ready()
	b.mem.Break(fmt.Errorf("watch: %w: an event has no key", kvstore.ErrProtocol))
	st := b.eventually("the fault", func(st Status) bool { return st.Code == codes.ProtocolBroken && st.Connected })
	if st.State != Degraded || !strings.Contains(st.Message, "no key") {
		t.Errorf("%s %q", st.State, st.Message)
	}
}

// TestBudget: known entries are kept, entries beyond the budget are refused, and the message names the setting to
// raise.
func TestBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(p *Params) {
		p.Budget = budget.Budget{Resources: map[wire.Resource]budget.Share{wire.Nodes: {Keys: 2}}, Value: 10}
	})
	b.put(wire.Nodes, false, "n2", "x")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.ready()
	b.put(wire.Nodes, false, "n3", "x")
	b.put(wire.Nodes, false, "n2", "z")
	st := b.eventually("over budget", func(st Status) bool { return st.Code == codes.OverBudget })
	if !st.Connected || st.State != Degraded || !strings.Contains(st.Message, "c2.nodes.keys=2") || !strings.Contains(st.Message, "--remote-budget") {
		t.Errorf("%s %q", st.State, st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2", "nodes/n2": "z of 2", "ips/10.0.0.1": "y of 2"})
	b.put(wire.IPs, false, "10.0.0.1", strings.Repeat("y", 11))
	b.mem.Unset(wire.Nodes.Prefix(testCluster, false) + "n3")
	st = b.eventually("the value", func(st Status) bool { return strings.Contains(st.Message, "c2.value=10") })
	if n := st.Families[wire.IPs].Rejections[wire.ReasonBudget]; n != 1 {
		t.Errorf("%d refused", n)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2", "nodes/n2": "z of 2", "ips/10.0.0.1": "y of 2"})
}

// TestEventsArePaced: no event is lost.
func TestEventsArePaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(p *Params) { p.Budget = budget.Budget{Events: 50} })
	b.ready()
	want := map[string]string{"nodes/n1": "x of 2"}
	for i := range 80 {
		name := fmt.Sprint("n", i)
		b.put(wire.Nodes, false, name, "x")
		want["nodes/"+name] = "x of 2"
	}
	b.eventually("events wait", func(st Status) bool { return st.Code == codes.EventsPaced })
	b.holds(want)
}

// TestAListMayNotTakeForEver: a list that takes too long is ended, and known entries are kept.
func TestAListMayNotTakeForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(p *Params) { p.Budget = budget.Budget{List: 1} })
	b.mem.SetPageSize(1)
	b.configure(plain(2))
	for i := range 5 {
		b.put(wire.Nodes, false, fmt.Sprint("n", i), "x")
	}
	b.run()
	st := b.eventually("a list that takes too long", func(st Status) bool { return st.Code == codes.ListTooLong })
	if !strings.Contains(st.Message, "c2.list=") {
		t.Errorf("%q", st.Message)
	}
}
