package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// ErrStopped is the error of calls that need a running allocator, after [Allocator.Run] has ended.
var ErrStopped = errors.New("the allocator has stopped")

// Allocator gives keys their IDs; see the package comment. All methods may be
// called by any goroutine, Run once.
type Allocator struct {
	backend Backend
	options options
	forGC   bool

	ran     atomic.Bool
	listed  chan struct{}  // closed by the watch when its first list is done
	stopped chan struct{}  // closed by Run when it ends
	jobs    waiting.Signal // jobs may be due
	events  *events        // nil when events are disabled
	// Limits of the messages about single keys, and about those of failed work: when the store does not answer, all
	// work fails.
	reports, failures *rate.Limiter

	mu    sync.Mutex
	core  *core
	turns map[string]*work // by the texts of the keys that are being worked on

	remotes remotes
}

// work is the turn of one allocation or job at a key.
type work struct {
	done chan struct{} // closed when the turn ends
	err  error         // set before done is closed, if all waiting calls fail with it
}

// NewAllocator returns an allocator over the backend. It does nothing before Run is called. The error names all
// invalid options.
func NewAllocator(backend Backend, opts ...Option) (*Allocator, error) {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if backend == nil {
		return nil, errors.New("an allocator needs a backend")
	}
	from, to := o.idRange()
	a := &Allocator{
		backend: backend, options: o,
		listed: make(chan struct{}), stopped: make(chan struct{}), jobs: waiting.NewSignal(),
		reports: rate.NewLimiter(rate.Every(time.Second), 10), failures: rate.NewLimiter(rate.Every(time.Minute), 3),
		core: newCore(from, to, o.protect), turns: make(map[string]*work),
	}
	if o.events {
		a.events = newEvents()
	}
	return a, nil
}

// NewAllocatorForGC returns an allocator that only collects garbage: it is not
// run and does not allocate.
func NewAllocatorForGC(backend Backend, opts ...Option) (*Allocator, error) {
	a, err := NewAllocator(backend, opts...)
	if err != nil {
		return nil, err
	}
	if a.options.withoutGC {
		return nil, errors.New("an allocator for garbage collection cannot be one without")
	}
	a.forGC = true
	return a, nil
}

// Run follows the mappings and runs the jobs that are due, until ctx ends. It returns the error of ctx when all its
// goroutines have ended. An allocator runs only once. The references of this node stay in the store; they end with
// their leases.
func (a *Allocator) Run(ctx context.Context) error {
	if a.forGC {
		return errors.New("an allocator for garbage collection is not run")
	}
	if a.ran.Swap(true) {
		return errors.New("an allocator runs only once")
	}
	defer close(a.stopped)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.backend.ListAndWatch(ctx, watcher{a}) })
	g.Go(func() error { return a.runJobs(ctx) })
	g.Go(func() error { return a.events.run(ctx) })
	return g.Wait()
}

// WaitForInitialSync waits until the first list is complete. It fails when ctx ends, when the list takes longer than
// the list timeout, and when Run has ended.
func (a *Allocator) WaitForInitialSync(ctx context.Context) error {
	if isClosed(a.stopped) {
		return ErrStopped
	}
	timeout := time.NewTimer(a.options.listTimeout)
	defer timeout.Stop()
	select {
	case <-a.listed:
		return nil
	case <-a.stopped:
		return ErrStopped
	case <-timeout.C:
		return fmt.Errorf("the first list of the mappings has not become complete within %s; the store says: %s", a.options.listTimeout, a.backend.Status())
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first list of the mappings: %w", ctx.Err())
	}
}

// with calls f with the core, under the lock.
func (a *Allocator) with(f func(*core)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.core)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// GetEvents returns the channel of events if the allocator was made with [WithEvents], else nil. A slow or missing
// reader blocks nothing: of several pending events for one ID only one is kept, which is the difference from the last
// event that was sent. The channel is closed when Run ends.
func (a *Allocator) GetEvents() <-chan AllocatorEvent {
	if a.events == nil {
		return nil
	}
	return a.events.out
}

// pause waits after the given number of failures in a row.
func (a *Allocator) pause(ctx context.Context, failures int) error {
	t := time.NewTimer(pause(failures, rand.Float64()))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-a.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endTurn ends the turn at a key; the caller holds a.mu. With an error, all calls that wait for the turn fail.
func (a *Allocator) endTurn(text string, err error) {
	w := a.turns[text]
	delete(a.turns, text)
	w.err = err
	close(w.done)
}

// beginTurn begins the turn at a key; the caller holds a.mu.
func (a *Allocator) beginTurn(text string) {
	a.turns[text] = &work{done: make(chan struct{})}
}
