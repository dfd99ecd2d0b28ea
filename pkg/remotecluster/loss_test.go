package remotecluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestALostConnectionWithdrawsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ready()
	b.cutOff()
	st := b.away()
	if st.Ready || st.Families[wire.Nodes].Freshness.State != FreshnessStale || !strings.Contains(st.Message, "is kept") {
		t.Errorf("while away: ready %t, freshness %+v, message %q", st.Ready, st.Families[wire.Nodes].Freshness, st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.mu.Lock()
	events := b.events
	b.mu.Unlock()
	b.reconnect()
	st = b.inState(Ready)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.events != events {
		t.Errorf("reconnecting with unchanged contents caused %d events", b.events-events)
	}
	if st.Failures == 0 || st.LastFailure.IsZero() || st.LastError == "" || st.ConsecFailures != 0 {
		t.Errorf("after the recovery: %d failures, %d in a row, last %v %q", st.Failures, st.ConsecFailures, st.LastFailure, st.LastError)
	}
}

func TestAnEmptyServerInItsPlaceWithdrawsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ready()
	b.mem.Replace()
	st := b.eventually("a new session that waits for its configuration", func(st Status) bool {
		return st.Connected && st.Failures > 0 && st.State == Degraded
	})
	if st.Ready || !strings.Contains(st.Message, "cilium/cluster-config/c2") {
		t.Errorf("waiting: ready %t, message %q", st.Ready, st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.put(wire.Nodes, false, "n2", "y")
	b.configure(plain(2))
	b.holds(map[string]string{"nodes/n2": "y of 2"})
}

func TestALostConnectionEndsNoConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ids.taken[2] = "other"
	b.configure(plain(2))
	b.run()
	b.inState(Failed)
	b.cutOff()
	st := b.eventually("the connection to be lost", func(st Status) bool { return st.State == Connecting && st.LastError == errNoAnswer.Error() })
	if st.IDConflict == nil || st.IDConflict.Holder != "other" {
		t.Errorf("while away: conflict %v", st.IDConflict)
	}
	b.reconnect()
	b.inState(Failed)
	b.configure(plain(0))
	if st := b.eventually("another refusal", func(st Status) bool { return strings.Contains(st.Message, "reserved") }); st.IDConflict != nil {
		t.Errorf("refused for another reason, but with a conflict: %v", st.IDConflict)
	}
	b.configure(plain(2))
	b.eventually("the conflict again", func(st Status) bool { return st.IDConflict != nil })
	b.ids.Release("other")
	if st := b.inState(Ready); st.IDConflict != nil {
		t.Errorf("ready, but in conflict: %v", st.IDConflict)
	}
}

// TestTheReasonOfALossIsThereWithIt: a status that shows the connection as lost has the reason of this loss, and no
// older one.
func TestTheReasonOfALossIsThereWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.setRefuse(errors.New("an old story"))
	b.configure(plain(2))
	b.run()
	b.eventually("a failure", func(st Status) bool { return st.Failures > 0 })
	b.setRefuse(nil)
	b.inState(Ready)
	b.cutOff()
	st := b.eventually("the connection to be lost", func(st Status) bool { return !st.Connected })
	if !strings.Contains(st.LastLoss, errNoAnswer.Error()) {
		t.Errorf("the reason is %q; the last error %q", st.LastLoss, st.LastError)
	}
	b.reconnect()
	b.inState(Ready)
	b.stop()
	if st := b.cluster.Status(); st.Connected || st.LastLoss != "" {
		t.Errorf("stopped: connected %t, lost by %q", st.Connected, st.LastLoss)
	}
}
