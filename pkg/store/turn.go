package store

import (
	"context"
	"sync"
	"time"
)

// How long a list may keep its turn while it waits for a page: a second, and less
// for one that has waited in vain before.
const (
	turnPatience    = time.Second
	turnPatienceMin = 10 * time.Millisecond
)

// turn is a list's place among those that may run at once. They are bounded to
// bound the pages in memory and the work at hand. A list that merely waits for a
// server that does not answer does neither, and gives its place to others; one that
// has handled a page lets others go first.
type turn struct {
	of      *Turns
	cluster string

	mu       sync.Mutex
	held     bool
	patience time.Duration
	waits    int         // how many waits have begun or ended: odd during one
	waiting  *time.Timer // gives the place up when it fires during the wait that set it
}

func takeTurn(ctx context.Context, of *Turns, cluster string) (*turn, error) {
	t := &turn{of: of, cluster: cluster, patience: turnPatience}
	return t, t.Resume(ctx)
}

// Resume is called when there is work to do. It waits for a place when that was
// given up meanwhile.
func (t *turn) Resume(ctx context.Context) error {
	if t.stopWaiting() {
		return nil
	}
	if err := t.of.Take(ctx, t.cluster); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = true
	return nil
}

// stopWaiting ends a wait, and tells whether the place is still held.
func (t *turn) stopWaiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endWait() && t.held {
		t.patience = min(2*t.patience, turnPatience)
	}
	return t.held
}

// endWait ends a wait, and tells whether there was one; mu is held. A timer that has
// fired already must not end a turn that is taken later.
func (t *turn) endWait() bool {
	if t.waits%2 == 0 {
		return false
	}
	t.waits++
	t.waiting.Stop()
	return true
}

// Yield is called between two pages: others who wait go first.
func (t *turn) Yield(ctx context.Context) error {
	if !t.of.Wanted(t.cluster) {
		return nil
	}
	t.mu.Lock()
	t.release()
	t.mu.Unlock()
	return t.Resume(ctx)
}

// Wait is called when the list begins to wait for the server.
func (t *turn) Wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits++
	during := t.waits
	t.waiting = time.AfterFunc(t.patience, func() { t.ranOut(during) })
}

func (t *turn) ranOut(during int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits != during {
		return
	}
	t.patience = max(t.patience/2, turnPatienceMin)
	t.release()
}

// release gives the place back, if it is held; mu is held.
func (t *turn) release() {
	if t.held {
		t.held = false
		t.of.Give(t.cluster)
	}
}

// End gives everything back.
func (t *turn) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endWait()
	t.release()
}
