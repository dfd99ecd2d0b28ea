package remotecluster

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestFromTheFileToReady(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(wire.Nodes, false, "n1", "x")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.run()
	st := b.eventually("the wait for the configuration", func(st Status) bool {
		return st.Connected && strings.Contains(st.Message, "cilium/cluster-config/c2")
	})
	if st.Ready || st.State != Syncing || len(b.held()) != 0 {
		t.Errorf("without a configuration: %s, ready %t, entries %v", st.State, st.Ready, b.held())
	}
	b.configure(plain(2))
	st = b.inState(Ready)
	b.holds(map[string]string{"nodes/n1": "x of 2", "ips/10.0.0.1": "y of 2"})
	if !st.Ready || st.ID != 2 || st.Message != "" || st.EtcdClusterID == "" || st.ConnectedSince.IsZero() || st.Families[wire.IPs].Count != 1 {
		t.Errorf("status %+v", st)
	}
	for r, s := range st.Families {
		if s.Freshness.State != FreshnessSynced || s.Freshness.AsOf.IsZero() {
			t.Errorf("%s: freshness %+v", r, s.Freshness)
		}
	}
}

// slowToWatch is a session that opens streams only after a channel is closed.
type slowToWatch struct {
	Client
	allowed <-chan struct{}
}

func (s slowToWatch) Watch(ctx context.Context, prefix string, from kvstore.Position, opts ...kvstore.SelectOption) (kvstore.Stream, error) {
	select {
	case <-s.allowed:
		return s.Client.Watch(ctx, prefix, from, opts...)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestBetweenTheFirstListAndItsStreamNothingIsLost: the cluster is not degraded before it was ready.
func TestBetweenTheFirstListAndItsStreamNothingIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	allowed := make(chan struct{})
	b.cluster.Connect = func(ctx context.Context, cfg *clientfile.Config) (Client, error) {
		client, err := b.connect(ctx, cfg)
		return slowToWatch{client, allowed}, err
	}
	b.put(wire.Nodes, false, "n1", "x")
	b.configure(plain(2))
	b.run()
	st := b.eventually("complete lists", func(st Status) bool {
		return st.Families[wire.Nodes].Synced && st.Families[wire.IPs].Synced
	})
	if st.State != Syncing || st.Ready || st.Code != codes.NotFollowed || !strings.Contains(st.Message, "following nodes: all 1 are listed") {
		t.Errorf("%s (ready %t): %s %s", st.State, st.Ready, st.Code, st.Message)
	}
	close(allowed)
	b.inState(Ready)
}

func TestFreshnessAdvancesWithoutEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.ready().Families[wire.IPs].Freshness.AsOf
	b.mem.Set("cilium/elsewhere", "moves the revision")
	b.eventually("a later proof", func(st Status) bool { return st.Families[wire.IPs].Freshness.AsOf.After(first) })
}

func TestCanariesHoldBackTheirResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(withCanaries(plain(2)))
	b.put(wire.Nodes, false, "n1", "x")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.canary(wire.Nodes)
	b.run()
	b.eventually("the wait for the canary of ips", func(st Status) bool {
		return st.Families[wire.Nodes].Synced && strings.Contains(st.Message, "cilium/synced/c2/cilium/state/ip/v1")
	})
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.canary(wire.IPs)
	b.inState(Ready)
	b.holds(map[string]string{"nodes/n1": "x of 2", "ips/10.0.0.1": "y of 2"})
}

func TestACanaryThatNeverComesEndsTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cluster.Timings.CanaryDeadline = 20 * time.Millisecond
	b.configure(withCanaries(plain(2)))
	b.run()
	st := b.eventually("a failure", func(st Status) bool { return st.Failures > 0 })
	if !strings.Contains(st.LastError, "no canary cilium/synced/c2/cilium/state/") {
		t.Errorf("last error %q", st.LastError)
	}
}

func TestTheIDChangesWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.configure(plain(3))
	b.holds(map[string]string{"nodes/n1": "x of 3"})
	b.eventually("ID 3", func(st Status) bool { return st.ID == 3 && st.State == Ready })
	// A change to a taken ID: everything is withdrawn, and the status has the reason.
	b.configure(plain(1))
	st := b.inState(Failed)
	b.holds(map[string]string{})
	if !strings.Contains(st.Message, "own") {
		t.Errorf("message %q does not name the owner", st.Message)
	}
	if diff := cmp.Diff(&IDConflict{ID: 1, Holder: "own"}, st.IDConflict); diff != "" {
		t.Errorf("the conflict as data (-want +got):\n%s", diff)
	}
	b.ids.mu.Lock()
	if diff := cmp.Diff(map[uint32]string{1: "own"}, b.ids.taken); diff != "" {
		t.Errorf("an ID that nothing carries must be free (-want +got):\n%s", diff)
	}
	b.ids.mu.Unlock()
	b.configure(plain(4))
	if st := b.inState(Ready); st.IDConflict != nil {
		t.Errorf("a conflict is left: %v", st.IDConflict)
	}
	b.holds(map[string]string{"nodes/n1": "x of 4"})
}

func TestAConflictEndsWhenTheOwnerGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ids.taken[2] = "other"
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	b.inState(Failed)
	if len(b.held()) != 0 {
		t.Errorf("in conflict, but entries are visible: %v", b.held())
	}
	b.ids.Release("other")
	b.inState(Ready)
	b.holds(map[string]string{"nodes/n1": "x of 2"})
}

func TestCapabilitiesAreFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "direct")
	b.put(wire.Nodes, true, "n1", "mirrored")
	b.run()
	b.holds(map[string]string{"nodes/n1": "direct of 2"})
	cfg := plain(2)
	cfg.Capabilities.Cached = true
	b.configure(cfg)
	b.holds(map[string]string{"nodes/n1": "mirrored of 2"})
	b.eventually("cached", func(st Status) bool { return st.Cached && st.State == Ready })
}

func TestABrokenConfigurationIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ready()
	b.mem.Set(wire.ClusterConfigKey(testCluster), "garbage")
	if st := b.inState(Degraded); !strings.Contains(st.Message, "cannot be read") || !st.Ready {
		t.Errorf("malformed: ready %t, %q", st.Ready, st.Message)
	}
	b.configure(plain(2))
	b.inState(Ready)
	b.mem.Unset(wire.ClusterConfigKey(testCluster))
	if st := b.inState(Degraded); !strings.Contains(st.Message, "deleted") {
		t.Errorf("deleted: %q", st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.configure(plain(0))
	if st := b.inState(Failed); !strings.Contains(st.Message, "reserved") {
		t.Errorf("ID 0: %q", st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2"}) // refused, not removed
	b.mem.Set(wire.ClusterConfigKey(testCluster), "garbage again")
	b.eventually("the garbage to be shown", func(st Status) bool { return st.State == Failed && strings.Contains(st.Message, "cannot be read") })
	b.mem.Unset(wire.ClusterConfigKey(testCluster))
	b.eventually("the deletion to be shown", func(st Status) bool { return st.State == Failed && strings.Contains(st.Message, "deleted") })
	if st := b.cluster.Status(); st.Failures != 1 || st.ConsecFailures != 1 {
		t.Errorf("one refused configuration counts as %d failures, %d in a row", st.Failures, st.ConsecFailures)
	}
	b.configure(plain(2))
	b.inState(Ready)
}

func TestAllEntriesRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "bad")
	b.put(wire.Nodes, false, "n2", "bad")
	b.run()
	if st := b.inState(Degraded); !strings.Contains(st.Message, "every one of its 2 nodes is refused: 2 for malformed") {
		t.Errorf("message %q", st.Message)
	}
	b.put(wire.Nodes, false, "n2", "good")
	b.inState(Ready)
}

func TestAnUnusableFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.WriteFile(b.file, []byte("endpoints: [unterminated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run()
	if st := b.inState(Failed); !strings.Contains(st.Message, b.file) {
		t.Errorf("the message does not name the file: %q", st.Message)
	}
}

func TestDrainWithdrawsAndGivesTheIDBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.run()
	b.inState(Ready)
	b.stop()
	if len(b.held()) != 2 {
		t.Errorf("stopping withdrew entries: %v", b.held())
	}
	_ = b.cluster.Drain(t.Context())
	if st := b.cluster.Status(); st.State != Removing || len(b.held()) != 0 || b.ids.taken[2] != "" {
		t.Errorf("after a drain: %s, entries %v, IDs %v", st.State, b.held(), b.ids.taken)
	}
}

// countedClient counts the completed bootstraps.
type countedClient struct {
	Client
	complete *atomic.Int32
}

func (c countedClient) BootstrapComplete() { c.complete.Add(1) }

// TestWhoNeverSyncsDoesNotBootstrapForEver: the bootstrap ends without a sync, since other clusters may share the
// session.
func TestWhoNeverSyncsDoesNotBootstrapForEver(t *testing.T) {
	t.Parallel()
	canaries := withCanaries(plain(2))
	refused := plain(1)
	for name, cfg := range map[string]*wire.ClusterConfig{"no configuration": nil, "no canary": &canaries, "refused": &refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ends atomic.Int32
			b := newBench(t)
			b.cluster.Timings.ConfigDeadline, b.cluster.Timings.CanaryDeadline = 30*time.Millisecond, 30*time.Millisecond
			b.cluster.Connect = func(ctx context.Context, cfg *clientfile.Config) (Client, error) {
				client, err := b.connect(ctx, cfg)
				return countedClient{client, &ends}, err
			}
			if cfg != nil {
				b.configure(*cfg)
			}
			b.run()
			b.eventually("the end of the bootstrap", func(Status) bool { return ends.Load() > 0 })
			if st := b.cluster.Status(); st.Failures == 0 || st.State == Ready {
				t.Errorf("before anything failed: %s, %d failures", st.State, st.Failures)
			}
		})
	}
}

// TestTheFileIsKnownBeforeRun: the status of a new cluster has its client file.
func TestTheFileIsKnownBeforeRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(p *Params) { p.File = "/mesh/c2" })
	if st := b.cluster.Status(); st.ConfigFile != "/mesh/c2" {
		t.Errorf("the client file is %q", st.ConfigFile)
	}
}
