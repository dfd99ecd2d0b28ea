package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// world is a cluster with its tables.
type world struct {
	t       testing.TB
	db      *statedb.DB
	cluster *local.Cluster
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := statedb.New()
	cluster, err := local.New(db)
	must(t, err)
	return &world{t, db, cluster}
}

// listed makes all tables complete.
func (w *world) listed() { w.cluster.Listed() }

// start runs something until the test ends.
func (w *world) start(run func(context.Context) error) {
	w.t.Helper()
	w.t.Cleanup(background(w.t, run))
}

// background runs something until the function that it returns is called.
func background(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	}
}

// set puts an object that is written in YAML into its table.
func set[T any, P local.Object[T]](t *testing.T, to *local.Objects[T, P], text string) {
	t.Helper()
	to.Apply([]store.Change[T]{{New: object[T](t, text)}})
}

// remove takes an object out of its table.
func remove[T any, P local.Object[T]](w *world, from *local.Objects[T, P], name string) {
	w.t.Helper()
	o, found := from.Get(w.db.ReadTxn(), name)
	if !found {
		w.t.Fatalf("there is no %s", name)
	}
	from.Apply([]store.Change[T]{{Old: (*T)(o)}})
}

// target collects the published values.
type target struct {
	mu       sync.Mutex
	values   map[string]string
	puts     int
	complete map[string]string // the published values when it was complete; nil before
	changed  chan struct{}
}

func newTarget() *target {
	return &target{values: make(map[string]string), changed: make(chan struct{}, 1)}
}

func (g *target) Put(name string, value []byte) {
	g.change(func() { g.values[name] = string(value); g.puts++ })
}

func (g *target) Delete(name string) {
	g.change(func() {
		if _, there := g.values[name]; !there {
			panic(name + " was deleted and never there")
		}
		delete(g.values, name)
	})
}

func (g *target) Complete() {
	g.change(func() {
		if g.complete != nil {
			panic("complete twice")
		}
		g.complete = maps.Clone(g.values)
	})
}

func (g *target) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *target) get() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.values)
}

// until waits until a condition holds for the published values.
func (g *target) until(t waittest.T, what string, ok func(values map[string]string) bool) {
	t.Helper()
	for !ok(g.get()) {
		<-g.changed
	}
}

// untilNames waits until these names are published.
func (g *target) untilNames(t *testing.T, names ...string) {
	t.Helper()
	want := make(map[string]struct{})
	for _, name := range names {
		want[name] = struct{}{}
	}
	g.until(t, fmt.Sprint("the names ", names), func(values map[string]string) bool {
		return maps.EqualFunc(values, want, func(string, struct{}) bool { return true })
	})
}

// isComplete reports whether Complete was called.
func (g *target) isComplete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.complete != nil
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
