package follow

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns shares a bounded number of places among clusters: for the lists that may run at once, or
// for the batches of events that are applied at once. A cluster has one place at a time, and
// clusters that wait are served in rotation, however many lists each of them has. A nil Turns has
// a place for everybody. Its methods may be called from any goroutine.
type Turns struct {
	mu   sync.Mutex
	free int
	busy map[string]bool // clusters with a place
	// lines are the clusters that wait, the next one first; each waits for something.
	lines []*queued
}

// queued is a cluster that waits for places, as often as it does.
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

// ask takes a place, or returns what is closed when there is one.
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

// Give gives the cluster's place back, to the first who waits and may have it. Its
// cluster is the last one in the next round.
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

// Wanted reports whether somebody would get the cluster's place if it were given back now.
func (t *Turns) Wanted(cluster string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(l *queued) bool { return l.cluster == cluster || !t.busy[l.cluster] })
}

// leave ends waiting; false when there is a place already.
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

// How long a list may keep its turn while it waits for a page: a second, and less
// for one that has waited in vain before.
const (
	turnPatience    = time.Second
	turnPatienceMin = 10 * time.Millisecond
)

// turn is a list's place among those that may run at once. They are bounded to bound the pages in
// memory and the work at hand. A list that merely waits for a server that does not answer does
// neither, and gives its place to others; one that has handled a page lets others go first.
type turn struct {
	of      *Turns // nil: there is no bound
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

// Resume is called when there is work to do. It waits for a place when that was given up meanwhile.
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

// End gives everything back.
func (t *turn) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endWait()
	t.release()
}
