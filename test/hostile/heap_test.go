package hostile

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// heapBound is the maximum memory for a hostile cluster, in addition to the memory in use before.
const heapBound = 256 << 20

// heap measures how much memory is in use, since its start.
type heap struct {
	before uint64
	most   atomic.Uint64
}

// watchHeap measures until the end of the test; no other test may use the heap meanwhile. The garbage collector has the
// bound, as from GOMEMLIMIT.
func watchHeap(tb testing.TB) *heap {
	tb.Helper()
	runtime.GC()
	h := &heap{before: inUse()}
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(int64(h.before) + heapBound*3/4)
	tb.Cleanup(func() { debug.SetMemoryLimit(limit) })
	meanwhile(tb, 20*time.Millisecond, func() { h.most.Store(max(h.most.Load(), inUse())) })
	return h
}

// meanwhile calls do at intervals until the end of the test.
func meanwhile(tb testing.TB, interval time.Duration, do func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for waiting.Sleep(ctx, interval) == nil {
			do()
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// check fails the test when the memory in use exceeded the bound.
func (h *heap) check(tb testing.TB) {
	tb.Helper()
	grown := int64(h.most.Load()) - int64(h.before)
	tb.Logf("the heap has grown by %d MiB at the most", grown>>20)
	if grown > heapBound {
		tb.Errorf("the heap has grown by %d MiB, at most %d are allowed", grown>>20, heapBound>>20)
	}
}
