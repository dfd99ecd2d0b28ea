// Package reconciletest has the common parts of tests of controllers that write Kubernetes objects: a controller's
// inputs, its reports, and its writes.
package reconciletest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
)

// World has the inputs of a controller. Its exported fields are guarded by Mu.
type World struct {
	T  *testing.T
	Mu sync.Mutex

	Remotes []reconcile.Remote
	Ready   bool
	Refuse  error    // for all writes; nil for none
	Writes  []string // the writes, also refused ones
	Made    int      // number of objects made
	trouble string   // last reported problem
}

// New returns a world that is ready, with clusters that were read.
func New(t *testing.T, remotes ...string) *World {
	w := &World{T: t, Ready: true}
	for _, name := range remotes {
		w.Remotes = append(w.Remotes, reconcile.Remote{Name: name, Read: true})
	}
	return w
}

// AtOnce is the maximum number of concurrent writes.
func (w *World) AtOnce() int { return 4 }

// IsReady is for a controller's parameters.
func (w *World) IsReady() (ready bool) {
	w.Set(func() { ready = w.Ready })
	return ready
}

// All is for a controller's parameters: the remote clusters.
func (w *World) All() (all []reconcile.Remote) {
	w.Set(func() { all = slices.Clone(w.Remotes) })
	return all
}

// Report is for a controller's parameters.
func (w *World) Report(task string, err error) {
	w.Set(func() {
		if w.trouble = ""; err != nil {
			w.trouble = task + ": " + err.Error()
		}
	})
}

// Set changes the world.
func (w *World) Set(change func()) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	change()
}

// Wrong is the last reported problem; empty when nothing is wrong.
func (w *World) Wrong() (text string) {
	w.Set(func() { text = w.trouble })
	return text
}

// NumWrites is the number of writes.
func (w *World) NumWrites() int { return len(w.WritesSince(0)) }

// WritesSince returns all writes except the first n.
func (w *World) WritesSince(n int) (all []string) {
	w.Set(func() { all = slices.Clone(w.Writes[n:]) })
	return all
}

// Run runs a controller until the returned function is called, or the test ends.
func (w *World) Run(run func(context.Context) error) (stop func()) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.T.Errorf("ended with %v", err)
		}
	})
	w.T.Cleanup(stop)
	return stop
}
