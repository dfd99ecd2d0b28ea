// Package heaptest measures the memory of tests and benchmarks. Nothing else may run in the process meanwhile.
package heaptest

import "runtime"

// Live returns the bytes of the objects that are in use. It collects the garbage twice: the second time finds what finalizers
// and unique handles released in the first one.
func Live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
