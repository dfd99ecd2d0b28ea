package hostile

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

// heapBound is what a hostile cluster may cost at the most, beyond what was there.
const heapBound = 256 << 20

// heap is how much memory is in use, from a moment on.
type heap struct {
	before uint64
	most   atomic.Uint64
}

// watchHeap measures until the end of the test, which shares the heap with no other
// one. The collector knows the bound as GOMEMLIMIT would.
func watchHeap(tb testing.TB) *heap {
	tb.Helper()
	runtime.GC()
	h := &heap{before: inUse()}
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(int64(h.before) + heapBound*3/4)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if now := inUse(); now > h.most.Load() {
					h.most.Store(now)
				}
			case <-stop:
				return
			}
		}
	}()
	tb.Cleanup(func() { close(stop); <-done; debug.SetMemoryLimit(limit) })
	return h
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// check fails the test when more was in use than may be.
func (h *heap) check(tb testing.TB) {
	tb.Helper()
	grown := int64(h.most.Load()) - int64(h.before)
	tb.Logf("the heap has grown by %d MiB at the most", grown>>20)
	if grown > heapBound {
		tb.Errorf("the heap has grown by %d MiB, at most %d are allowed", grown>>20, heapBound>>20)
	}
}
