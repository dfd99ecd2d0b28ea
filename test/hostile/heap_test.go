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
	tb.Cleanup(func() { debug.SetMemoryLimit(limit) })
	meanwhile(tb, 20*time.Millisecond, func() { h.most.Store(max(h.most.Load(), inUse())) })
	return h
}

// meanwhile does something at intervals until the end of the test.
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

// check fails the test when more was in use than may be.
func (h *heap) check(tb testing.TB) {
	tb.Helper()
	grown := int64(h.most.Load()) - int64(h.before)
	tb.Logf("the heap has grown by %d MiB at the most", grown>>20)
	if grown > heapBound {
		tb.Errorf("the heap has grown by %d MiB, at most %d are allowed", grown>>20, heapBound>>20)
	}
}
