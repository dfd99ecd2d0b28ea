package store

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// turnPatience is how long a list may keep its turn while it waits for a page.
const turnPatience = time.Second

// turn is a place among the lists that may run at once. They are bounded to
// bound the pages in memory and the work at hand; a list that merely waits for
// a server that does not answer does neither, and gives its place to others.
type turn struct {
	of *semaphore.Weighted // nil: no bound

	mu      sync.Mutex
	held    bool
	waiting *time.Timer // gives the place up; nil before the first wait
}

// takeTurn waits for a place.
func takeTurn(ctx context.Context, of *semaphore.Weighted) (*turn, error) {
	t := &turn{of: of}
	return t, t.resume(ctx)
}

// resume is called when there is work to do; it waits for a place when that
// was given up.
func (t *turn) resume(ctx context.Context) error {
	if t.of == nil {
		return nil
	}
	t.mu.Lock()
	held := t.held
	if t.waiting != nil && !t.waiting.Stop() {
		held = false // it is given up, or about to be
	}
	t.mu.Unlock()
	if held {
		return nil
	}
	t.giveUp()
	if err := t.of.Acquire(ctx, 1); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = true
	return nil
}

// wait is called when the list begins to wait for the server.
func (t *turn) wait() {
	if t.of == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = time.AfterFunc(turnPatience, t.giveUp)
}

// giveUp gives the place back, if it is held.
func (t *turn) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.held = false
		t.of.Release(1)
	}
}

// end gives everything back.
func (t *turn) end() {
	if t.of == nil {
		return
	}
	t.mu.Lock()
	if t.waiting != nil {
		t.waiting.Stop()
	}
	t.mu.Unlock()
	t.giveUp()
}
