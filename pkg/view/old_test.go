package view

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// rewriting writes one large object of each kind, like remote clusters that write the same objects repeatedly.
type rewriting struct {
	f       *fixture
	n       int
	service *services.Service
	node    *nodes.Node
	entry   *ipcache.Entry
	id      *identities.Identity
}

const rewrittenBackends = 3000

func (r *rewriting) write() {
	r.n++
	w := &wire.Service{Cluster: "c2", ClusterID: 2, Namespace: "shop", Name: "cart", Shared: true, Backends: make(map[string]wire.Ports, rewrittenBackends)}
	for i := range rewrittenBackends {
		w.Backends[fmt.Sprintf("10.%d.%d.%d", r.n%200, i/250, i%250)] = wire.Ports{"http": {Protocol: "TCP", Port: 80}}
	}
	was := *r
	r.service = services.FromWire(w, wire.SourceClusterMesh)
	r.node = &nodes.Node{Cluster: "c2", Name: "n", BootID: fmt.Sprint(r.n), Labels: map[string]string{"text": strings.Repeat("x", 500_000) + fmt.Sprint(r.n)}}
	ports := make([]wire.NamedPort, 100)
	for i := range ports {
		ports[i] = wire.NamedPort{Name: fmt.Sprint("p", i), Port: uint16(r.n)}
	}
	r.entry = ipcache.NewEntry(ipcache.Spec{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: &ipcache.Claimant{Name: "c2", ID: 2}, Identity: uint32(r.n), Ports: ports})
	r.id = &identities.Identity{ID: 70000, ClusterID: 2, Cluster: "c2", Labels: identities.NewLabels(wire.ParseLabels("k8s:app=" + strings.Repeat("y", 50_000) + fmt.Sprint(r.n) + ";"))}
	r.f.Services.Apply([]store.Change[services.Service]{{Name: "c2/shop/cart", Old: was.service, New: r.service}})
	r.f.nodes.Apply(become(was.node, r.node))
	r.f.Identities.Apply([]store.Change[identities.Identity]{{Name: "70000", Old: was.id, New: r.id}})
	r.f.ips.Apply([]ipcache.Op{{Old: was.entry, New: r.entry}})
	r.f.Position()
}

func inUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const (
	testOld  = 4 << 20
	testKept = 8 << 20
)

// bounded returns a fixture with little room for old versions.
func bounded(t *testing.T) *fixture {
	f := newFixture(t)
	f.feed.room, f.feed.kept.room = testOld, testKept
	return f
}

// wantGrowth checks that the memory in use has grown by little. The newest versions are included.
func wantGrowth(t *testing.T, before, room int64) {
	t.Helper()
	if grown := inUse() - before; grown > room {
		t.Errorf("the memory has grown by %d KiB, want at most %d", grown>>10, room>>10)
	}
}

// TestOldVersionsAreBounded: the same few objects change endlessly, and there is no reader.
func TestOldVersionsAreBounded(t *testing.T) {
	// Not parallel: it measures the memory of the process.
	f := bounded(t)
	r := &rewriting{f: f}
	r.write()
	before := inUse()
	token := f.Token(f.Position())
	for range 60 {
		r.write()
	}
	wantGrowth(t, before, 3*testOld)
	f.feed.mu.Lock()
	sum, dropped := f.feed.old.sum, f.feed.old.dropped
	var of int64
	for _, kind := range f.feed.old.of {
		of += kind.bytes
	}
	f.feed.mu.Unlock()
	if sum > testOld || of != sum || dropped == 0 {
		t.Errorf("%d bytes, %d by kind, %d dropped", sum, of, dropped)
	}
	// A client that reconnects receives a reset, and then the newest state. Kinds that use little memory lose nothing.
	for kind, want := range map[Kind]EventType{Services: Reset, Nodes: Reset, IPs: Upsert} {
		for e, err := range f.Changes(t.Context(), token, kind) {
			waittest.Must(t, err)
			if e.Type != want {
				t.Errorf("%s: %s, want %s", kind, e.Type, want)
			}
			break
		}
	}
	runtime.KeepAlive(r)
}

// turnsForAll grants every turn at once.
type turnsForAll struct{}

func (turnsForAll) Take(context.Context) (func(), error) { return func() {}, nil }
func (turnsForAll) Try() (func(), bool)                  { return func() {}, true }
func (turnsForAll) Wanted() bool                         { return false }

// stuck is a receiver whose client reads nothing until the connection is aborted.
type stuck struct {
	reached chan struct{}
	aborted chan struct{}
	cut     atomic.Bool
}

func (s *stuck) Event(Event) error {
	if s.cut.Load() {
		return errStopped
	}
	s.reached <- struct{}{}
	<-s.aborted
	return nil
}

func (s *stuck) Idle(ctx context.Context, _ Event, _ <-chan struct{}) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *stuck) Abort() {
	if s.cut.CompareAndSwap(false, true) {
		close(s.aborted)
	}
}

// TestSlowReadersKeepLittle: readers that started at different times and read nothing keep one old state each. Their
// total is bounded.
func TestSlowReadersKeepLittle(t *testing.T) {
	f := bounded(t)
	r := &rewriting{f: f}
	r.write()
	before := inUse()
	ended := make(chan error, 40)
	ctx, cancel := context.WithCancel(t.Context())
	for range cap(ended) {
		s := &stuck{reached: make(chan struct{}), aborted: make(chan struct{})}
		stream := f.Stream("", Subscription{Kind: Services}, Subscription{Kind: Nodes})
		go func() {
			defer context.AfterFunc(ctx, s.Abort)()
			ended <- stream.Run(ctx, s, turnsForAll{})
		}()
		<-s.reached
		r.write()
	}
	f.feed.mu.Lock()
	left := len(f.feed.kept.all)
	f.feed.mu.Unlock()
	if left == 0 || left == cap(ended) {
		t.Errorf("%d readers are left", left)
	}
	for range cap(ended) - left { // each of them is ended
		if err := <-ended; err != whyEnded && err != errStopped {
			t.Errorf("it ended with: %v", err)
		}
	}
	wantGrowth(t, before, 3*(testOld+testKept))
	cancel()
	for range left {
		<-ended
	}
	runtime.KeepAlive(r)
}
