// Package heaptest measures the memory of tests and benchmarks. Nothing else may run in the process meanwhile.
package heaptest

import (
	"runtime"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// Long skips a long test of memory if only short ones are wanted, and with the race detector: `make test-all` runs the
// tests whose name contains Memory without it, too.
func Long(t testing.TB) {
	t.Helper()
	waittest.Long(t)
	if Raced {
		t.Skip("it measures memory without the race detector: make test-all")
	}
}

// Live returns the bytes of the objects that are in use. It collects the garbage twice: the second time finds what finalizers
// and unique handles released in the first one.
func Live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
