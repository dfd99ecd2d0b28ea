package findings

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
)

// policed returns two clusters with these states of the disconnect policy.
func policed(c1, c2 disconnect.Forecast) []remotecluster.Status {
	return []remotecluster.Status{
		{Name: "c1", State: remotecluster.Ready, Forecast: &c1},
		{Name: "c2", State: remotecluster.Ready, Forecast: &c2},
	}
}

func TestWhatThePolicyDoesIsReportedOnceWithItsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	step := func(what string, c1, c2 disconnect.Forecast, want ...string) {
		t.Helper()
		w.mesh.SetClusters(policed(c1, c2)...)
		w.look()
		w.expectEvents(what, want...)
	}
	kept := disconnect.Forecast{}
	w.mesh.SetClusters(policed(kept, kept)...)
	w.look()
	w.expectEvents("two clusters", "c1 cluster-added: ", "c1 cluster-ready: ", "c2 cluster-added: ", "c2 cluster-ready: ")
	doubt := disconnect.Forecast{
		State: disconnect.Demote, Doubtful: true, Why: "its services could not be confirmed since then: no answer",
		Evidence: disconnect.Evidence{AsOf: epoch, Heartbeat: epoch.Add(-time.Second), Error: "no answer"},
	}
	step("demoted", doubt, kept, "c1 cluster-demoted: its service backends are used only where no other cluster has a usable one: its services could not be confirmed since then: no answer")
	var last *Event
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		last = e
	}
	for name, want := range map[string]string{
		"confirmed": "2026-11-21T01:02:03Z", "heartbeat": "2026-11-21T01:02:02Z", "error": "no answer", "connectedSince": "",
	} {
		if got := last.Evidence[name]; got != want {
			t.Errorf("evidence %s: %q, want %q", name, got, want)
		}
	}
	step("still", doubt, kept)
	doubt.State = disconnect.Withdraw
	step("withdrawn", doubt, kept, "c1 cluster-withdrawn: its service backends are removed where another cluster has a usable one: its services")
	doubt.Held, doubt.Failing, doubt.Judged = epoch, 2, 2
	other := disconnect.Forecast{Doubtful: true, Held: epoch, Failing: 2, Judged: 2}
	step("the other one, too", doubt, other, "c1,c2 policy-held: 2 of 2 clusters are in doubt at the same time (c1, c2)")
	step("still both", doubt, other)
	doubt.Held = time.Time{}
	step("one is back", doubt, kept, " policy-resumed: no more than half")
	step("both are", kept, kept, "c1 cluster-restored: its service backends are used again")
	codestest.Reached(t, codes.Policy, w.reached("policy-", "cluster-demoted", "cluster-withdrawn", "cluster-restored")...)
}
