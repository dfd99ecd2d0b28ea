package kvstore

import (
	"context"
	"fmt"
	"maps"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"
)

// lockTable has the locks that this session holds, and the keys of locks that are
// left behind because their deletion failed.
type lockTable struct {
	gauge Gauge // nil for none

	mu   sync.Mutex
	held map[*Lock]*held   // guarded by mu
	left map[string]string // path to key; guarded by mu
	wake chan struct{}     // guarded by mu; closed and replaced when a key is left behind, and with the first lock
}

// held is the state of a lock in the table.
type held struct {
	since    time.Time
	caller   string // the caller of Lock: file and line
	reported bool
	lease    int64 // the lease of its key
	lost     bool  // it is known to be no longer held, and Unlock was not called yet
}

func newLockTable(gauge Gauge) *lockTable {
	return &lockTable{
		gauge: gauge, held: make(map[*Lock]*held), left: make(map[string]string), wake: make(chan struct{}),
	}
}

// count changes the gauge by n.
func (h *lockTable) count(n float64) {
	if h.gauge != nil {
		h.gauge.Add(n)
	}
}

func (h *lockTable) add(l *Lock, lease int64, caller string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		h.awake()
	}
	h.held[l] = &held{since: now, caller: caller, lease: lease}
	h.count(1)
}

func (h *lockTable) remove(l *Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if how := h.held[l]; how != nil {
		delete(h.held, l)
		if !how.lost {
			h.count(-1)
		}
	}
}

// lose records that a lock is no longer held, and notifies its holder.
func (h *lockTable) lose(l *Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if how := h.held[l]; how != nil {
		h.mark(l, how)
	}
}

// leaseEnded does the same as lose for all locks of a lease.
func (h *lockTable) leaseEnded(lease int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, how := range h.held {
		if how.lease == lease {
			h.mark(l, how)
		}
	}
}

// mark records that a lock is lost; mu is held. Until Unlock is called, the lock stays in the table,
// and other callers of this process wait for it.
func (h *lockTable) mark(l *Lock, how *held) {
	if !how.lost {
		how.lost = true
		close(l.lost)
		h.count(-1)
	}
}

// clear removes all locks, and notifies their holders: the session has ended.
func (h *lockTable) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, how := range h.held {
		h.mark(l, how)
	}
	clear(h.held)
	clear(h.left)
}

// number returns the number of held locks, without those that are known to be lost.
func (h *lockTable) number() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, how := range h.held {
		if !how.lost {
			n++
		}
	}
	return n
}

// holder describes the holder of a path in this process; empty when no caller holds it.
func (h *lockTable) holder(path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, how := range h.held {
		if l.Path == path {
			return "this process, taken at " + how.caller
		}
	}
	return ""
}

// leave records a key that could not be deleted, or that may exist.
func (h *lockTable) leave(path, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left[path] = key
	h.awake()
}

// awake wakes up watchLocks; mu is held.
func (h *lockTable) awake() {
	close(h.wake)
	h.wake = make(chan struct{})
}

// entered records that no key is left behind for the path: it was deleted, or has been replaced.
func (h *lockTable) entered(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.left, path)
}

// leftBehind returns the keys that are left behind, whether watchLocks has nothing to do,
// and a channel that is closed when there is more to do.
func (h *lockTable) leftBehind() (left map[string]string, idle bool, wake <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.left), len(h.left)+len(h.held) == 0, h.wake
}

// stale returns, once, each lock that has been held for longer than limit and is not lasting.
func (h *lockTable) stale(now time.Time, limit time.Duration) map[*Lock]held {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[*Lock]held)
	for l, how := range h.held {
		if !how.reported && !l.lasting.Load() && now.Sub(how.since) > limit {
			how.reported = true
			found[l] = *how
		}
	}
	return found
}

// cleanUpPause is the pause between two attempts to delete a key that was left behind.
const cleanUpPause = time.Second

// watchLocks deletes the keys that were left behind, and reports locks that are held for a long time.
func (w *EngineWriter) watchLocks(ctx context.Context) error {
	for ctx.Err() == nil {
		left, idle, wake := w.held.leftBehind()
		pause := w.o.StaleLock / 3
		for path, key := range left {
			if !w.cleanUp(ctx, path, key) {
				pause = min(pause, cleanUpPause)
			}
		}
		w.reportStale(time.Now())
		due := time.Now().Add(pause)
		if idle { // as in every process that only reads
			due = time.Time{}
		}
		await(ctx, wake, due)
	}
	return ctx.Err()
}

// cleanUp deletes a key that was left behind, and reports whether it is deleted. While the path is
// taken again in this process, cleanUp does nothing: the new holder replaces the key.
func (w *EngineWriter) cleanUp(ctx context.Context, path, key string) bool {
	if !w.paths.Try(path) {
		return false
	}
	defer w.paths.Release(path)
	if w.deleteLock(ctx, path, key) != nil {
		return false
	}
	w.held.entered(path)
	return true
}

func (w *EngineWriter) reportStale(now time.Time) {
	for l, how := range w.held.stale(now, w.o.StaleLock) {
		if log := w.o.Log; log != nil {
			log.Warn("A kvstore lock is still held after a long time",
				"path", l.Path, "held", now.Sub(how.since).Round(time.Millisecond), "by", how.caller)
		}
	}
}

// callerName returns the file and line from which a caller outside this package called Lock.
func callerName() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if path.Base(path.Dir(f.File)) != "kvstore" || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
