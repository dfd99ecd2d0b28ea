package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idTable is a minimal owner of cluster IDs.
func (*idTable) Admit(string, uint32) error { return nil }

type idTable struct {
	mu    sync.Mutex
	taken map[uint32]string
}

func (x *idTable) Reserve(name string, id uint32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if owner, ok := x.taken[id]; ok && owner != name {
		return &IDConflict{ID: id, Holder: owner}
	}
	for old, owner := range x.taken {
		if owner == name {
			delete(x.taken, old)
		}
	}
	x.taken[id] = name
	return nil
}

func (x *idTable) Release(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, owner := range x.taken {
		if owner == name {
			delete(x.taken, id)
		}
	}
}

// bench is a controller on a kvstore in memory, with two sources that keep
// nodes and ips as text.
type bench struct {
	t       *testing.T
	mem     *memory.Store
	ids     *idTable
	cluster *Cluster
	file    string

	before  func(wire.Resource, []store.Change[string]) // called with changes before they are applied; nil is nothing
	mu      sync.Mutex
	refuse  error // what connecting ends with
	entries map[string]string
	events  int

	stop func()
}

const testCluster = "c2"

// consumer has what a test gives it.
type consumer struct {
	sources      []Source
	skipOptional bool
	withhold     func(bool)
}

func (c *consumer) Sources() []Source      { return c.sources }
func (c *consumer) SkipOptional() bool     { return c.skipOptional }
func (c *consumer) Follow(context.Context) {}
func (c *consumer) Withhold(yes bool)      { c.withhold(yes) }

// consumerOf is that of the parameters.
func consumerOf(p *Params) *consumer { return p.Consumer.(*consumer) }

func newBench(t *testing.T, change ...func(*Params)) *bench {
	t.Helper()
	b := &bench{
		t: t, mem: memory.New(), entries: map[string]string{},
		ids:  &idTable{taken: map[uint32]string{1: "own"}},
		file: filepath.Join(t.TempDir(), testCluster),
	}
	b.mem.SetProbeInterval(20 * time.Millisecond)
	if err := os.WriteFile(b.file, []byte("endpoints:\n- http://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	layout, err := wire.NewLayout(255)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	timings := DefaultTimings()
	timings.RetryMin, timings.RetryMax = 10*time.Millisecond, 50*time.Millisecond
	timings.ConflictRetry = 20 * time.Millisecond
	p := Params{
		Name: testCluster, Local: wire.ClusterInfo{Name: "own", ID: 1, MaxConnectedClusters: 255}, Layout: layout,
		Consumer: &consumer{sources: []Source{b.source(wire.Nodes, log), b.source(wire.IPs, log)}},
		IDs:      b.ids,
		Connect:  b.connect,
		Timings:  timings,
		Changed:  func() {},
		Log:      log,
	}
	for _, f := range change {
		f(&p)
	}
	b.cluster = New(p)
	return b
}

func (b *bench) source(r wire.Resource, log *slog.Logger) Source {
	return store.NewWatch(store.Kind[string]{
		Resource: r,
		Decode: func(e wire.Expect) store.Decode[string] {
			return func(_ string, value []byte) (*string, error) {
				if string(value) == "bad" {
					return nil, &wire.RejectError{Reason: wire.ReasonMalformed, Err: errors.New("bad")}
				}
				text := fmt.Sprintf("%s of %d", value, e.ClusterID)
				return &text, nil
			}
		},
		Apply: func(changes []store.Change[string]) {
			if b.before != nil {
				b.before(r, changes)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, ch := range changes {
				b.events++
				key := string(r) + "/" + ch.Name
				if ch.New == nil {
					delete(b.entries, key)
				} else {
					b.entries[key] = *ch.New
				}
			}
		},
	}, log)
}

func (b *bench) connect(context.Context, *clientfile.Config) (Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return nil, b.refuse
	}
	return b.mem.Connect(), nil
}

func (b *bench) setRefuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = err
}

// run starts the controller; it is stopped at the end of the test.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.cluster.Run(ctx, b.file) }()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(b.stop)
}

func (b *bench) configure(cfg wire.ClusterConfig) {
	b.mem.Set(wire.ClusterConfigKey(testCluster), string(cfg.Encode()))
}

func (b *bench) put(r wire.Resource, cached bool, name, value string) {
	b.mem.Set(r.Prefix(testCluster, cached)+name, value)
}

// eventually waits for a condition on the status.
func (b *bench) eventually(what string, ok func(Status) bool) Status {
	b.t.Helper()
	var st Status
	waittest.Until(b.t, what, func() bool { st = b.cluster.Status(); return ok(st) }, func() string {
		return fmt.Sprintf("status: %s %q, last error %q", st.State, st.Message, st.LastError)
	})
	return st
}

func (b *bench) inState(s State) Status {
	b.t.Helper()
	return b.eventually("state "+string(s), func(st Status) bool { return st.State == s })
}

func (b *bench) holds(want map[string]string) {
	b.t.Helper()
	b.eventually(fmt.Sprint("entries ", want), func(Status) bool { return maps.Equal(b.held(), want) })
}

func (b *bench) held() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.entries)
}

func plain(id uint32) wire.ClusterConfig {
	return wire.ClusterConfig{ID: id, Capabilities: wire.Capabilities{MaxConnectedClusters: 255}}
}

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
	if !st.Ready || st.ID != 2 || st.Message != "" || st.EtcdClusterID == "" || st.ConnectedSince.IsZero() || st.Sources[wire.IPs].Count != 1 {
		t.Errorf("status %+v", st)
	}
	for r, s := range st.Sources {
		if s.Freshness.State != FreshnessSynced || s.Freshness.AsOf.IsZero() {
			t.Errorf("%s: freshness %+v", r, s.Freshness)
		}
	}
}

// slowToWatch is a session whose streams begin when they may.
type slowToWatch struct {
	Client
	may <-chan struct{}
}

func (s slowToWatch) Watch(ctx context.Context, prefix string, from kvstore.Position) (kvstore.Stream, error) {
	select {
	case <-s.may:
		return s.Client.Watch(ctx, prefix, from)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestBetweenTheFirstListAndItsStreamNothingIsLost: the cluster is not degraded before it was ready.
func TestBetweenTheFirstListAndItsStreamNothingIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	may := make(chan struct{})
	b.cluster.Connect = func(ctx context.Context, cfg *clientfile.Config) (Client, error) {
		client, err := b.connect(ctx, cfg)
		return slowToWatch{client, may}, err
	}
	b.put(wire.Nodes, false, "n1", "x")
	b.configure(plain(2))
	b.run()
	st := b.eventually("complete lists", func(st Status) bool {
		return st.Sources[wire.Nodes].Synced && st.Sources[wire.IPs].Synced
	})
	if st.State != Syncing || st.Ready || st.Code != codes.NotFollowed || !strings.Contains(st.Message, "following nodes: all 1 are listed") {
		t.Errorf("%s (ready %t): %s %s", st.State, st.Ready, st.Code, st.Message)
	}
	close(may)
	b.inState(Ready)
}

func TestFreshnessAdvancesWithoutEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.run()
	first := b.inState(Ready).Sources[wire.IPs].Freshness.AsOf
	b.mem.Set("cilium/elsewhere", "moves the revision")
	b.eventually("a later proof", func(st Status) bool { return st.Sources[wire.IPs].Freshness.AsOf.After(first) })
}

func TestCanariesHoldBackTheirResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := plain(2)
	cfg.Capabilities.SyncedCanaries = true
	b.configure(cfg)
	b.put(wire.Nodes, false, "n1", "x")
	b.put(wire.IPs, false, "10.0.0.1", "y")
	b.mem.Set(wire.SyncedKey(testCluster, wire.Nodes, false), "now")
	b.run()
	b.eventually("the wait for the canary of ips", func(st Status) bool {
		return st.Sources[wire.Nodes].Synced && strings.Contains(st.Message, "cilium/synced/c2/cilium/state/ip/v1")
	})
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.mem.Set(wire.SyncedKey(testCluster, wire.IPs, false), "now")
	b.inState(Ready)
	b.holds(map[string]string{"nodes/n1": "x of 2", "ips/10.0.0.1": "y of 2"})
}

func TestACanaryThatNeverComesEndsTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cluster.Timings.CanaryDeadline = 20 * time.Millisecond
	cfg := plain(2)
	cfg.Capabilities.SyncedCanaries = true
	b.configure(cfg)
	b.run()
	st := b.eventually("a failure", func(st Status) bool { return st.Failures > 0 })
	if !strings.Contains(st.LastError, "no canary cilium/synced/c2/cilium/state/") {
		t.Errorf("last error %q", st.LastError)
	}
}

func TestALostConnectionWithdrawsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	b.inState(Ready)
	b.setRefuse(errors.New("connection refused"))
	b.mem.SetFault(func(context.Context, string, string) error { return errors.New("no answer") })
	b.mem.Break(nil)
	st := b.eventually("the session to be over", func(st Status) bool {
		return st.State == Degraded && !st.Connected && st.Failures > 0
	})
	if st.Ready || st.Sources[wire.Nodes].Freshness.State != FreshnessStale || !strings.Contains(st.Message, "is kept") {
		t.Errorf("while away: ready %t, freshness %+v, message %q", st.Ready, st.Sources[wire.Nodes].Freshness, st.Message)
	}
	b.holds(map[string]string{"nodes/n1": "x of 2"})
	b.mu.Lock()
	events := b.events
	b.mu.Unlock()
	b.mem.SetFault(nil)
	b.setRefuse(nil)
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
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	b.inState(Ready)
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
	// To a taken one: everything is withdrawn, and says why.
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
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	b.inState(Ready)
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
	b.eventually("the garbage to be told", func(st Status) bool { return st.State == Failed && strings.Contains(st.Message, "cannot be read") })
	b.mem.Unset(wire.ClusterConfigKey(testCluster))
	b.eventually("the deletion to be told", func(st Status) bool { return st.State == Failed && strings.Contains(st.Message, "deleted") })
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

func TestALostConnectionEndsNoConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ids.taken[2] = "other"
	b.configure(plain(2))
	b.run()
	b.inState(Failed)
	b.setRefuse(errors.New("connection refused"))
	b.mem.SetFault(noAnswer)
	b.mem.Break(nil)
	st := b.eventually("the connection to be lost", func(st Status) bool { return st.State == Connecting && st.LastError == "connection refused" })
	if st.IDConflict == nil || st.IDConflict.Holder != "other" {
		t.Errorf("while away: conflict %v", st.IDConflict)
	}
	b.mem.SetFault(nil)
	b.setRefuse(nil)
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

// TestTheReasonOfALossIsThereWithIt: whoever sees that the connection is lost
// sees why, and nothing that was before.
func TestTheReasonOfALossIsThereWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.setRefuse(errors.New("an old story"))
	b.configure(plain(2))
	b.run()
	b.eventually("a failure", func(st Status) bool { return st.Failures > 0 })
	b.setRefuse(nil)
	b.inState(Ready)
	b.mem.SetFault(noAnswer)
	b.mem.Break(nil)
	st := b.eventually("the connection to be lost", func(st Status) bool { return !st.Connected })
	if !strings.Contains(st.LastLoss, errNoAnswer.Error()) {
		t.Errorf("the reason is %q; the last error %q", st.LastLoss, st.LastError)
	}
	b.mem.SetFault(nil)
	b.inState(Ready)
	b.stop()
	if st := b.cluster.Status(); st.Connected || st.LastLoss != "" {
		t.Errorf("stopped: connected %t, lost by %q", st.Connected, st.LastLoss)
	}
}

// countedClient counts how often it is told that the first sync is over.
type countedClient struct {
	Client
	complete *atomic.Int32
}

func (c countedClient) BootstrapComplete() { c.complete.Add(1) }

// TestWhoNeverSyncsDoesNotBootstrapForEver: others may share the session.
func TestWhoNeverSyncsDoesNotBootstrapForEver(t *testing.T) {
	t.Parallel()
	canaries := plain(2)
	canaries.Capabilities.SyncedCanaries = true
	refused := plain(1)
	for name, cfg := range map[string]*wire.ClusterConfig{"no configuration": nil, "no canary": &canaries, "refused": &refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told atomic.Int32
			b := newBench(t)
			b.cluster.Timings.ConfigDeadline, b.cluster.Timings.CanaryDeadline = 30*time.Millisecond, 30*time.Millisecond
			b.cluster.Connect = func(ctx context.Context, cfg *clientfile.Config) (Client, error) {
				client, err := b.connect(ctx, cfg)
				return countedClient{client, &told}, err
			}
			if cfg != nil {
				b.configure(*cfg)
			}
			b.run()
			b.eventually("the end of the bootstrap", func(Status) bool { return told.Load() > 0 })
			if st := b.cluster.Status(); st.Failures == 0 || st.State == Ready {
				t.Errorf("before anything failed: %s, %d failures", st.State, st.Failures)
			}
		})
	}
}
