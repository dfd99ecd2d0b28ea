package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idTable is a minimal implementation of cluster IDs.
type idTable struct {
	mu    sync.Mutex
	taken map[uint32]string
}

func (*idTable) Admit(string, uint32) error { return nil }

func (x *idTable) Reserve(name string, id uint32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if owner, ok := x.taken[id]; ok && owner != name {
		return &IDConflict{ID: id, Holder: owner}
	}
	maps.DeleteFunc(x.taken, func(_ uint32, owner string) bool { return owner == name })
	x.taken[id] = name
	return nil
}

func (x *idTable) Release(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.taken, func(_ uint32, owner string) bool { return owner == name })
}

// bench is a controller on a kvstore in memory, with two families that keep nodes and ips as text.
type bench struct {
	t       *testing.T
	mem     *memory.Store
	ids     *idTable
	cluster *Cluster
	file    string

	before  func(wire.Resource, []store.Change[string]) // called with changes before they are applied; may be nil
	mu      sync.Mutex
	refuse  error // the error of Connect; nil for none
	entries map[string]string
	events  int // number of applied changes; guarded by mu

	stop func()
}

const testCluster = "c2"

// consumer is a Consumer whose methods use the fields.
type consumer struct {
	families     []Family
	skipOptional bool
	withhold     func(bool)
}

func (c *consumer) Families() []Family     { return c.families }
func (c *consumer) SkipOptional() bool     { return c.skipOptional }
func (c *consumer) Follow(context.Context) {}
func (c *consumer) Withhold(yes bool)      { c.withhold(yes) }

// consumerOf returns the consumer of the parameters.
func consumerOf(p *Params) *consumer { return p.Consumer.(*consumer) }

func newBench(t *testing.T, change ...func(*Params)) *bench {
	t.Helper()
	b := &bench{
		t: t, mem: memory.New(), entries: map[string]string{},
		ids:  &idTable{taken: map[uint32]string{1: "own"}},
		file: filepath.Join(t.TempDir(), testCluster),
	}
	b.mem.SetProbeInterval(20 * time.Millisecond)
	waittest.Must(t, os.WriteFile(b.file, []byte("endpoints:\n- http://127.0.0.1:1\n"), 0o600))
	layout, err := wire.NewLayout(255)
	waittest.Must(t, err)
	log := slog.New(slog.DiscardHandler)
	timings := DefaultTimings()
	timings.RetryMin, timings.RetryMax = 10*time.Millisecond, 50*time.Millisecond
	timings.ConflictRetry = 20 * time.Millisecond
	p := Params{
		Name: testCluster, Local: wire.ClusterInfo{Name: "own", ID: 1, MaxConnectedClusters: 255}, Layout: layout,
		Consumer: &consumer{families: []Family{b.source(wire.Nodes, log), b.source(wire.IPs, log)}},
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

func (b *bench) source(r wire.Resource, log *slog.Logger) Family {
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

// run starts the controller, once; it is stopped at the end of the test.
func (b *bench) run() {
	if b.stop != nil {
		b.t.Fatal("the controller runs already: ready starts it too")
	}
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

// withCanaries returns the configuration with canaries announced.
func withCanaries(cfg wire.ClusterConfig) wire.ClusterConfig {
	cfg.Capabilities.SyncedCanaries = true
	return cfg
}

// canary writes the canary of a resource.
func (b *bench) canary(r wire.Resource) { b.mem.Set(wire.SyncedKey(testCluster, r, false), "now") }

// ready starts the controller of a cluster with a configuration and one node, and waits
// until it is ready.
func (b *bench) ready() Status {
	b.t.Helper()
	b.configure(plain(2))
	b.put(wire.Nodes, false, "n1", "x")
	b.run()
	return b.inState(Ready)
}

var errNoAnswer = errors.New("no answer")

// cutOff ends the session. All requests fail until [bench.reconnect].
func (b *bench) cutOff() {
	b.setRefuse(errNoAnswer)
	b.mem.SetFault(func(context.Context, string, string) error { return errNoAnswer })
	b.mem.Break(nil)
}

func (b *bench) reconnect() {
	b.mem.SetFault(nil)
	b.setRefuse(nil)
}

// away waits until the cluster, which was synced, is not connected.
func (b *bench) away() Status {
	b.t.Helper()
	return b.eventually("the session to be over", func(st Status) bool { return st.State == Degraded && !st.Connected && st.Failures > 0 })
}
