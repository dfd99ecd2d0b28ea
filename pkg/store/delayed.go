package store

import (
	"context"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// Delayed is a filter between a [Watch] of keys that other nodes own and the function that applies its changes:
// it passes a deletion on only after a delay, since a node that restarts or loses its lease soon writes its
// keys again (spec wire.md §5: 30 s for nodes). A key that returns in time is passed on as a modification of
// its previous value. When the value is the same object, there is no change. Its methods may be called from any
// goroutine. Batches are applied one after another, in order.
type Delayed[T any] struct {
	delay time.Duration
	apply func([]Change[T])
	wake  waiting.Signal // deletions are held back

	mu   sync.Mutex // held while changes are applied
	held heldBack[T]
}

// NewDelayed returns a filter in front of apply.
func NewDelayed[T any](delay time.Duration, apply func([]Change[T])) *Delayed[T] {
	return &Delayed[T]{delay: delay, apply: apply, wake: waiting.NewSignal(), held: newHeldBack[T]()}
}

// Apply takes changes, like those of a Watch. All changes except deletions are applied when it returns. asOf is the time
// until which the keys were known to be as they were before the changes.
func (d *Delayed[T]) Apply(changes []Change[T], asOf time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var pass []Change[T]
	due := time.Now().Add(d.delay)
	for _, ch := range changes {
		if ch, ok := d.held.change(ch, due, asOf); ok {
			pass = append(pass, ch)
		}
	}
	if len(pass) > 0 {
		d.apply(pass)
	}
	if len(d.held.since) > 0 {
		d.wake.Notify()
	}
}

// AsOf returns the time until which the applied changes are those of the keys, if deletions are held back; false: none
// are.
func (d *Delayed[T]) AsOf() (at time.Time, held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held = d.held.next(); held {
		at = d.held.since[0].asOf
	}
	return at, held
}

// Flush applies all deletions now. It is for the withdrawal of all keys, after which no key returns.
func (d *Delayed[T]) Flush() { d.release(time.Now().Add(d.delay)) }

// release applies the deletions that are due, and returns when the next one is.
func (d *Delayed[T]) release(now time.Time) (next time.Time, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gone := d.held.due(now); len(gone) > 0 {
		d.apply(gone)
	}
	return d.held.next()
}

// Run applies the deletions when they are due, until ctx ends. Deletions still held back at that time wait for
// the next Run.
func (d *Delayed[T]) Run(ctx context.Context) error {
	for {
		next, more := d.release(time.Now())
		if more {
			if err := waiting.Sleep(ctx, time.Until(next)); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.wake:
		}
	}
}

// heldBack is the pure core of [Delayed]: the deletions that are not passed on yet.
type heldBack[T any] struct {
	of    map[string]*deletion[T]
	since []*deletion[T] // in the order of due; some are outdated
}

type deletion[T any] struct {
	name string
	old  *T
	due  time.Time
	asOf time.Time
}

func newHeldBack[T any]() heldBack[T] { return heldBack[T]{of: make(map[string]*deletion[T])} }

// change takes a change, and returns the change to apply now, if there is one. due is the time at which a
// deletion has to be passed on; neither it nor asOf ever decreases.
func (h *heldBack[T]) change(ch Change[T], due, asOf time.Time) (Change[T], bool) {
	if ch.New == nil {
		gone := &deletion[T]{ch.Name, ch.Old, due, asOf}
		h.of[ch.Name], h.since = gone, append(h.since, gone)
		return ch, false
	}
	if gone, held := h.of[ch.Name]; held {
		delete(h.of, ch.Name)
		ch.Old = gone.old
	}
	return ch, ch.Old != ch.New
}

func (h *heldBack[T]) due(now time.Time) (gone []Change[T]) {
	for {
		next, more := h.next()
		if !more || next.After(now) {
			return gone
		}
		first := h.since[0]
		gone = append(gone, Change[T]{Name: first.name, Old: first.old})
		delete(h.of, first.name)
		h.since = h.since[1:]
	}
}

func (h *heldBack[T]) next() (due time.Time, more bool) {
	for len(h.since) > 0 {
		if first := h.since[0]; h.of[first.name] == first {
			return first.due, true
		}
		h.since = h.since[1:]
	}
	h.since = nil
	return time.Time{}, false
}
