package remotecluster

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// withheld records the calls of Withhold.
type withheld struct {
	mu    sync.Mutex
	calls []bool
}

func (w *withheld) withhold(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, yes)
}

func (w *withheld) was(want ...bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Equal(w.calls, want)
}

func TestWithoutContactTheBackendsAreWithheld(t *testing.T) {
	t.Parallel()
	var w withheld
	b := sliceBench(t, func(p *Params) { p.CacheTTL, consumerOf(p).withhold = 50*time.Millisecond, w.withhold })
	b.configure(exporting(wire.EndpointSlicesBoth))
	b.run()
	b.inState(Ready)
	before := b.held()
	b.cutOff()
	st := b.eventually("the backends to be withheld", func(st Status) bool { return !st.Withheld.IsZero() })
	if !strings.Contains(st.Message, "backends are not used since") || !strings.Contains(st.Message, "50ms") || st.State != Degraded || st.Revocations != 1 {
		t.Errorf("%s, %d revocations, message %q", st.State, st.Revocations, st.Message)
	}
	b.eventually("the call", func(Status) bool { return w.was(true) })
	b.holds(before) // withholding is a filter: the families keep everything
	// A session that fails before the sync does not change that.
	b.mem.Unset(wire.ClusterConfigKey(testCluster))
	b.reconnect()
	b.eventually("a session without a configuration", func(st Status) bool { return st.Connected && !st.Withheld.IsZero() })
	b.configure(exporting(wire.EndpointSlicesBoth))
	if st := b.inState(Ready); !st.Withheld.IsZero() || st.Message != "" {
		t.Errorf("synced again: withheld since %v, message %q", st.Withheld, st.Message)
	}
	b.eventually("them to be taken back", func(Status) bool { return w.was(true, false) })
}

func TestARemovedClusterIsNotWithheldAnyMore(t *testing.T) {
	t.Parallel()
	var w withheld
	b := sliceBench(t, func(p *Params) { p.CacheTTL, consumerOf(p).withhold = time.Millisecond, w.withhold })
	b.configure(exporting(wire.EndpointSlicesBoth))
	b.run()
	b.inState(Ready)
	b.cutOff()
	b.eventually("the backends to be withheld", func(Status) bool { return w.was(true) })
	b.stop()
	if !w.was(true) {
		t.Errorf("stopping took them back: %v", w.calls)
	}
	_ = b.cluster.Drain(t.Context())
	if !w.was(true, false) || len(b.held()) != 0 {
		t.Errorf("after the drain: %v, entries %v", w.calls, b.held())
	}
}
