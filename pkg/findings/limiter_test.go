package findings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

const flaps = 1500

// eventsOf returns the number of events after an ID that concern a cluster, and the last of them.
func (w *world) eventsOf(since uint64, cluster string) (n int, last *Event) {
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if e.ID > since && e.Involves(cluster) {
			n, last = n+1, e
		}
	}
	return n, last
}

// TestAConflictThatFlapsIsLimited: a conflict appears and is resolved 1,500 times, each within half a second.
func TestAConflictThatFlapsIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claims(claim("10.0.0.1/32", 2), claim("10.0.0.9/32", 4))
	flap := func(yes bool) {
		if e := claim("10.0.0.1/32", 3); yes {
			w.ips.Apply([]ipcache.Op{{New: e}})
		} else {
			w.ips.Apply([]ipcache.Op{{Old: e}})
		}
		w.now = w.now.Add(250 * time.Millisecond)
		w.watch.Look(w.now)
	}
	for i := range flaps {
		flap(true)
		if i == flaps/2 { // conflicts of other clusters are reported meanwhile
			w.claims(claim("10.0.0.9/32", 5))
		}
		flap(false)
	}
	minutes := int(w.now.Sub(epoch)/time.Minute) + 1
	most := 2 * (eventBurst + minutes) // two clusters
	n, last := w.eventsOf(0, "c3")
	if n == 0 || n > most {
		t.Errorf("%d events of %d flaps within %d minutes, want %d at the most", n, flaps, minutes, most)
	}
	if lines := strings.Count(w.log.String(), "10.0.0.1/32"); lines != n {
		t.Errorf("%d lines for %d events", lines, n)
	}
	if last.Evidence["untold"] == "" || !strings.Contains(last.Message, "similar events of these clusters were not shown") {
		t.Errorf("the last event does not say what was left out: %+v", last)
	}
	if n, _ := w.eventsOf(0, "c5"); n != 1 {
		t.Errorf("%d events of the conflict of two others", n)
	}

	// After the flapping, the final state is reported once the limit allows it, and nothing after that.
	flap(true)
	before := w.found.lastID
	for range 10 {
		w.now = w.now.Add(time.Minute)
		w.watch.Look(w.now)
	}
	if n, last := w.eventsOf(before, "c3"); n > 1 || n == 1 && last.Kind != "conflict" {
		t.Errorf("%d events at rest, the last %+v", n, last)
	}
	if _, last := w.eventsOf(0, "c3"); last.Kind != "conflict" {
		t.Errorf("it ended as a conflict, and what was reported last is %+v", last)
	}
	w.now = w.now.Add(time.Hour)
	w.claims(claim("10.0.0.9/32", 6))
	w.watch.Look(w.now)
	if n := len(w.found.limiter.of); n > 3 {
		t.Errorf("%d allowances are kept", n)
	}
}

// TestSessionsThatFlapAreLimited: a session works until the cluster is synced and then breaks a rule, 1,500 times. The
// events of other clusters are kept, other events of this cluster too, and the final state is reported.
func TestSessionsThatFlapAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := remotecluster.Status{Name: "c3", ID: 3, State: remotecluster.Ready, Connected: true, ConnectedSince: epoch}
	c := remotecluster.Status{Name: "c2", ID: 2}
	step := func(state remotecluster.State, connected bool) {
		c.State, c.Connected = state, connected
		if connected {
			c.ConnectedSince = w.now
		} else {
			c.Failures++
			c.LastError = fmt.Sprintf("error %c", 'a'+rune(c.Failures%26))
		}
		w.mesh.SetClusters(c, other)
		w.look()
	}
	step(remotecluster.Connecting, false)
	for i := range flaps {
		if i == flaps/2 {
			w.claims(claim("10.0.0.1/32", 2), claim("10.0.0.1/32", 3))
		}
		step(remotecluster.Syncing, true)
		step(remotecluster.Ready, true)
		step(remotecluster.Degraded, false)
	}
	minutes := int(w.now.Sub(epoch)/time.Minute) + 1
	n, last := w.eventsOf(0, "c2")
	if most := eventBurst + minutes + 2; n < eventBurst || n > most { // 2: the cluster was added, and the conflict
		t.Errorf("%d events of %d sessions within %d minutes, want %d at the most", n, flaps, minutes, most)
	}
	if last.Evidence["untold"] == "" {
		t.Errorf("the last event does not say what was left out: %+v", last)
	}
	kinds := make(map[string]int)
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if e.Involves("c3") {
			kinds[e.Kind]++
		}
	}
	if kinds["cluster-added"] != 1 || kinds["cluster-connected"] != 1 || kinds["cluster-ready"] != 1 || kinds["conflict"] != 1 {
		t.Errorf("of the other cluster there are left %v", kinds)
	}

	step(remotecluster.Syncing, true)
	step(remotecluster.Ready, true)
	c.ConnectedSince = c.ConnectedSince.Add(time.Second) // a reconnect between two looks
	w.mesh.SetClusters(c, other)
	for range 10 {
		w.now = w.now.Add(time.Minute)
		w.watch.Look(w.now)
	}
	var state *Event // the last one
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if e.Involves("c2") && e.state() {
			state = e
		}
	}
	if state.Kind != "cluster-ready" {
		t.Errorf("it is ready, and what was reported last is %+v", state)
	}
}
