package store

import (
	"context"
	"slices"
	"sync"
)

// Turns shares a bounded number of places among clusters: for the lists that may run at once, or
// for the batches of events that are applied at once. A cluster has one place at a time, and
// clusters that wait are served in rotation, however many lists each of them has. Its methods may
// be called from any goroutine.
type Turns struct {
	mu   sync.Mutex
	free int
	busy map[string]struct{} // clusters with a place
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
	return &Turns{free: max(n, 1), busy: make(map[string]struct{})}
}

// Take waits for a place for the cluster, until ctx ends.
func (t *Turns) Take(ctx context.Context, cluster string) error {
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
	if t.isFree(cluster) && t.free > 0 {
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

func (t *Turns) isFree(cluster string) bool { // it has no place
	_, has := t.busy[cluster]
	return !has
}

func (t *Turns) take(cluster string) {
	t.free--
	t.busy[cluster] = struct{}{}
}

func (t *Turns) lineOf(cluster string) int {
	return slices.IndexFunc(t.lines, func(l *queued) bool { return l.cluster == cluster })
}

// Give gives the cluster's place back, to the first who waits and may have it. Its
// cluster is the last one in the next round.
func (t *Turns) Give(cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	delete(t.busy, cluster)
	i := slices.IndexFunc(t.lines, func(l *queued) bool { return t.isFree(l.cluster) })
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

// Wanted tells whether somebody would get the cluster's place if it were given
// back now.
func (t *Turns) Wanted(cluster string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(l *queued) bool { return l.cluster == cluster || t.isFree(l.cluster) })
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
