package remotecluster

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// sliceBench has families of services in both formats, in addition to the source of nodes.
func sliceBench(t *testing.T, change ...func(*Params)) *bench {
	t.Helper()
	b := newBench(t, change...)
	log := slog.New(slog.DiscardHandler)
	b.cluster.families = []Family{b.source(wire.Nodes, log), b.source(wire.Services, log), b.source(wire.EndpointSlices, log)}
	b.put(wire.Nodes, false, "n", "x")
	b.put(wire.Services, false, "ns/s", "x")
	b.put(wire.EndpointSlices, false, "ns/s-1", "x")
	return b
}

func exporting(mode string) wire.ClusterConfig {
	cfg := plain(2)
	cfg.Capabilities.EndpointSlicesExportMode = mode
	return cfg
}

func TestOnlyWhatIsExportedIsRead(t *testing.T) {
	t.Parallel()
	b := sliceBench(t)
	node, service, slice := "nodes/n", "services/ns/s", "endpointslices/ns/s-1"
	b.configure(exporting(wire.EndpointSlicesServicesOnly))
	b.run()
	b.holds(map[string]string{node: "x of 2", service: "x of 2"})
	st := b.inState(Ready)
	if s := st.Families[wire.EndpointSlices]; s.Exported || !s.Synced || s.Count != 0 || s.Freshness.State != FreshnessSynced || s.Freshness.AsOf.IsZero() {
		t.Errorf("slices that are not exported: %+v", s)
	}
	// The mode is followed during the session, in every direction.
	b.configure(exporting(wire.EndpointSlicesBoth))
	b.holds(map[string]string{node: "x of 2", service: "x of 2", slice: "x of 2"})
	b.inState(Ready)
	b.configure(exporting(wire.EndpointSlicesOnly))
	b.holds(map[string]string{node: "x of 2", slice: "x of 2"})
	st = b.inState(Ready)
	if s := st.Families[wire.Services]; s.Exported || !s.Synced || s.Freshness.State != FreshnessSynced {
		t.Errorf("services that are not exported: %+v", s)
	}
	b.configure(exporting(wire.EndpointSlicesServicesOnly))
	b.holds(map[string]string{node: "x of 2", service: "x of 2"})
	first := b.inState(Ready).Families[wire.EndpointSlices].Freshness.AsOf
	b.mem.Set("cilium/elsewhere", "moves the revision")
	b.eventually("the configuration to be confirmed again", func(st Status) bool {
		return st.Families[wire.EndpointSlices].Freshness.AsOf.After(first)
	})
	b.configure(exporting("nonsense"))
	if st := b.inState(Failed); !strings.Contains(st.Message, "nonsense") {
		t.Errorf("message %q", st.Message)
	}
}

func TestWhatIsNotExportedIsStaleWhileAway(t *testing.T) {
	t.Parallel()
	b := sliceBench(t)
	b.configure(exporting(wire.EndpointSlicesServicesOnly))
	b.run()
	b.inState(Ready)
	b.cutOff()
	st := b.away()
	if s := st.Families[wire.EndpointSlices]; !s.Synced || s.Freshness.State != FreshnessStale || s.Freshness.AsOf.IsZero() {
		t.Errorf("slices that are not exported: %+v", s)
	}
}

func TestDetailsThatDoNotComeHoldNothingBack(t *testing.T) {
	t.Parallel()
	b := sliceBench(t, func(p *Params) { p.Timings.DetailDeadline, p.Timings.CanaryDeadline = 20*time.Millisecond, time.Hour })
	b.configure(withCanaries(exporting(wire.EndpointSlicesBoth)))
	b.canary(wire.Nodes)
	b.canary(wire.Services)
	b.run()
	late := func(what string) {
		t.Helper()
		st := b.eventually(what, func(st Status) bool {
			// For a moment, a broken stream has another message.
			return st.State == Degraded && st.Ready && strings.Contains(st.Message, "cilium/synced/c2/cilium/state/endpointslices/v1")
		})
		if !st.Families[wire.EndpointSlices].Late || st.Failures > 1 {
			t.Errorf("%s: %d failures, %+v, message %q", what, st.Failures, st.Families[wire.EndpointSlices], st.Message)
		}
	}
	late("to go on without slices")
	b.holds(map[string]string{"nodes/n": "x of 2", "services/ns/s": "x of 2"})
	// The next session does the same, at once.
	b.cluster.Timings.DetailDeadline = time.Hour
	b.mem.Break(nil)
	late("to go on without slices again")
	// When the canary arrives, the slices are used.
	b.canary(wire.EndpointSlices)
	b.holds(map[string]string{"nodes/n": "x of 2", "services/ns/s": "x of 2", "endpointslices/ns/s-1": "x of 2"})
	if st := b.inState(Ready); st.Families[wire.EndpointSlices].Late {
		t.Error("slices that came are still late")
	}
}

func TestSlicesThatAreAllThereIsAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := sliceBench(t, func(p *Params) {
		p.Timings.DetailDeadline, p.Timings.CanaryDeadline = time.Millisecond, 50*time.Millisecond
	})
	b.configure(withCanaries(exporting(wire.EndpointSlicesOnly)))
	b.canary(wire.Nodes)
	b.run()
	st := b.eventually("a failure", func(st Status) bool { return st.Failures > 0 })
	if !strings.Contains(st.LastError, "no canary cilium/synced/c2/cilium/state/endpointslices/v1") {
		t.Errorf("last error %q", st.LastError)
	}
	b.canary(wire.EndpointSlices)
	b.inState(Ready)
	b.holds(map[string]string{"nodes/n": "x of 2", "endpointslices/ns/s-1": "x of 2"})
}

func TestTheOwnCluster(t *testing.T) {
	t.Parallel()
	loads := make(chan string, 1)
	b := sliceBench(t, func(p *Params) {
		p.Origin = OriginLocal
		p.Local = wire.ClusterInfo{Name: testCluster, ID: 9, MaxConnectedClusters: 255}
		p.Load = func(file string) (*clientfile.Config, error) {
			select {
			case loads <- file:
			default:
			}
			return clientfile.New("http://127.0.0.1:1")
		}
	})
	b.ids.taken = map[uint32]string{9: "whoever"} // no ID is reserved
	b.configure(plain(2))                         // and the configuration is not read
	b.run()
	st := b.inState(Ready)
	b.holds(map[string]string{"nodes/n": "x of 9", "services/ns/s": "x of 9", "endpointslices/ns/s-1": "x of 9"})
	if file := <-loads; file != b.file || st.ID != 9 || !st.Ready || st.IDConflict != nil {
		t.Errorf("file %q, status %+v", file, st)
	}
	b.cutOff()
	b.away()
	if len(b.held()) != 3 {
		t.Errorf("while away %v are left", b.held())
	}
	b.reconnect()
	b.inState(Ready)
}

// TestNoServicesAreMissingBetweenTwoFormats: services of the old format stay until those of the new format are synced,
// also across failed sessions.
func TestNoServicesAreMissingBetweenTwoFormats(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{
		wire.EndpointSlicesServicesOnly: wire.EndpointSlicesOnly,
		wire.EndpointSlicesOnly:         wire.EndpointSlicesServicesOnly,
	} {
		t.Run(from+" to "+to, func(t *testing.T) {
			t.Parallel()
			b := sliceBench(t)
			b.cluster.Timings.CanaryDeadline = 20 * time.Millisecond
			b.configure(exporting(from))
			b.run()
			b.inState(Ready)
			before, old, next := b.held(), wire.Services, wire.EndpointSlices
			left := "services/ns/s"
			if from == wire.EndpointSlicesOnly {
				old, next, left = next, old, "endpointslices/ns/s-1"
			}
			b.configure(withCanaries(exporting(to)))
			b.canary(wire.Nodes)
			st := b.eventually("sessions without the canary", func(st Status) bool { return st.Failures > 1 && st.Connected })
			if held := b.held(); held[left] != before[left] {
				t.Errorf("withdrawn before the %s are there: %v", next, held)
			}
			if s := st.Families[old]; s.Exported || !s.Synced || s.Count != 1 || s.Freshness.State != FreshnessStale {
				t.Errorf("what is kept: %+v", s)
			}
			b.canary(next)
			st = b.inState(Ready)
			if held := b.held(); held[left] != "" || len(held) != 2 {
				t.Errorf("with the %s, what they replace must go: %v", next, held)
			}
			if s := st.Families[old]; s.Count != 0 || s.Freshness.State != FreshnessSynced {
				t.Errorf("what is withdrawn: %+v", s)
			}
		})
	}
}
