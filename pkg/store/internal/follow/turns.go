package follow

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns shares a bounded number of places among clusters: for the lists that may run at once, or for the
// batches of events that are applied at once. A cluster has one place at a time, and clusters that wait are
// served in rotation, regardless of how many lists each of them has. A nil Turns sets no bound. Its methods may
// be called from any goroutine.
type Turns struct {
	mu   sync.Mutex
	free int
	busy map[string]bool // clusters with a place
	// lines are the clusters that wait, the next one first; each has at least one waiter.
	lines []*queued
}

// queued is a cluster that waits, with all its waiters.
type queued struct {
	cluster string
	waiting []chan struct{} // each is closed when it has a place
}

// NewTurns returns n places.
func NewTurns(n int) *Turns {
	return &Turns{free: max(n, 1), busy: make(map[string]bool)}
}

// Take waits for a place for the cluster, until ctx ends.
func (t *Turns) Take(ctx context.Context, cluster string) error {
	if t == nil {
		return nil
	}
	ready := t.ask(cluster)
	if ready == nil {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	if !t.leave(cluster, ready) { // it was given a place meanwhile
		t.Give(cluster)
	}
	return ctx.Err()
}

// ask takes a place and returns nil, or returns a channel that is closed when the cluster has a place.
func (t *Turns) ask(cluster string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.busy[cluster] && t.free > 0 {
		t.take(cluster)
		return nil
	}
	ready := make(chan struct{})
	if i := t.lineOf(cluster); i >= 0 {
		t.lines[i].waiting = append(t.lines[i].waiting, ready)
	} else {
		t.lines = append(t.lines, &queued{cluster, []chan struct{}{ready}})
	}
	return ready
}

func (t *Turns) take(cluster string) {
	t.free--
	t.busy[cluster] = true
}

func (t *Turns) lineOf(cluster string) int {
	return slices.IndexFunc(t.lines, func(l *queued) bool { return l.cluster == cluster })
}

// Give returns the cluster's place. The first waiting cluster that may have it gets it; if this cluster has
// further waiters, it moves to the end of the queue.
func (t *Turns) Give(cluster string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	delete(t.busy, cluster)
	i := slices.IndexFunc(t.lines, func(l *queued) bool { return !t.busy[l.cluster] })
	if i < 0 {
		return
	}
	l := t.lines[i]
	t.lines = slices.Delete(t.lines, i, i+1)
	t.take(l.cluster)
	close(l.waiting[0])
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		t.lines = append(t.lines, l)
	}
}

// Wanted reports whether a waiter would get the cluster's place if it were returned now.
func (t *Turns) Wanted(cluster string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(l *queued) bool { return l.cluster == cluster || !t.busy[l.cluster] })
}

// leave removes a waiter; false when it has been given a place already.
func (t *Turns) leave(cluster string, ready chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.lineOf(cluster)
	if i < 0 {
		return false
	}
	l := t.lines[i]
	at := slices.Index(l.waiting, ready)
	if at < 0 {
		return false
	}
	if l.waiting = slices.Delete(l.waiting, at, at+1); len(l.waiting) == 0 {
		t.lines = slices.Delete(t.lines, i, i+1)
	}
	return true
}

// How long a list may keep its turn while it waits for a page: a second, and less for a list that has exceeded
// it before.
const (
	turnPatience    = time.Second
	turnPatienceMin = 10 * time.Millisecond
)

// turn is a list's place among those that may run at once. Their number is bounded to limit the pages in memory
// and the work. A list that waits for a server without an answer uses neither, and gives its place to others. A
// list that has processed a page lets waiting lists go first.
type turn struct {
	of      *Turns // nil: there is no bound
	cluster string

	mu       sync.Mutex
	held     bool
	patience time.Duration
	waits    int         // number of begun and ended waits: odd during a wait
	waiting  *time.Timer // gives the place up when it fires during the wait that set it
}

func takeTurn(ctx context.Context, of *Turns, cluster string) (*turn, error) {
	t := &turn{of: of, cluster: cluster, patience: turnPatience}
	return t, t.Resume(ctx)
}

// Resume is called when there is work to do. It waits for a place when the list has given up its place.
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

// stopWaiting ends a wait, and reports whether the place is still held.
func (t *turn) stopWaiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endWait() && t.held {
		t.patience = min(2*t.patience, turnPatience)
	}
	return t.held
}

// endWait ends a wait, and reports whether there was one; mu is held. A timer that has
// fired already must not end a turn that is taken later.
func (t *turn) endWait() bool {
	if t.waits%2 == 0 {
		return false
	}
	t.waits++
	t.waiting.Stop()
	return true
}

// Yield is called between two pages: lists that wait go first.
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
	if t.of == nil {
		return
	}
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

// End ends a wait and returns the place.
func (t *turn) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endWait()
	t.release()
}
