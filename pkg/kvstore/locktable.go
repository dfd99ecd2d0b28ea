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

// lockTable has the locks that this session holds, and the keys of locks that it
// has left behind because their deletion failed.
type lockTable struct {
	gauge Gauge // nil for none

	mu   sync.Mutex
	held map[*Lock]*held   // guarded by mu
	left map[string]string // path to key; guarded by mu
	wake chan struct{}     // guarded by mu; closed and replaced when something is left behind, and with the first lock
}

// held is how a lock is held.
type held struct {
	since    time.Time
	caller   string // who took it: file and line
	reported bool
	lease    int64 // that its key is tied to
	lost     bool  // it is known not to be held any more, and was not given up
}

func newLockTable(gauge Gauge) *lockTable {
	return &lockTable{
		gauge: gauge, held: make(map[*Lock]*held), left: make(map[string]string), wake: make(chan struct{}),
	}
}

// count keeps the gauge.
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

// lose notes that a lock is not held any more, and notifies its holder.
func (h *lockTable) lose(l *Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if how := h.held[l]; how != nil {
		h.mark(l, how)
	}
}

// leaseEnded does the same for all locks of a lease.
func (h *lockTable) leaseEnded(lease int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, how := range h.held {
		if how.lease == lease {
			h.mark(l, how)
		}
	}
}

// mark notes that a lock is lost; mu is held. It stays in the table, and others of this
// process wait for it, until it is given up.
func (h *lockTable) mark(l *Lock, how *held) {
	if !how.lost {
		how.lost = true
		close(l.lost)
		h.count(-1)
	}
}

// clear forgets all locks, and notifies their holders: the session has ended.
func (h *lockTable) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, how := range h.held {
		h.mark(l, how)
	}
	clear(h.held)
	clear(h.left)
}

// number is how many locks are held, as far as is known.
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

// holder says who holds a path in this process; empty when nobody does.
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

// leave notes a key that could not be deleted, or may exist.
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

// entered notes that the path has a new key: nothing is left behind there.
func (h *lockTable) entered(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.left, path)
}

// leftBehind returns what is left behind, whether there is nothing to watch at all,
// and a channel that is closed when there is more.
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

// cleanUpPause is between two attempts to delete what was left behind.
const cleanUpPause = time.Second

// watchLocks deletes what was left behind and reports locks that are held for long.
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
		if idle { // as with everybody who only reads
			due = time.Time{}
		}
		await(ctx, wake, due)
	}
	return ctx.Err()
}

// cleanUp deletes a key that was left behind, and reports whether that is done. Whoever
// takes the path again deletes that key.
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

// callerName is the place that called the exported method that calls this.
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
