package allocator

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// runningFor is running for benchmarks.
func runningFor(b *testing.B, backend Backend, opts ...Option) *Allocator {
	b.Helper()
	a, err := NewAllocator(backend, opts...)
	must(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = a.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-a.stopped
	})
	return a
}

// BenchmarkAllocateHit allocates a key that is in use on this node.
func BenchmarkAllocateHit(b *testing.B) {
	backend := newMemoryStore().backend("n")
	a := runningFor(b, backend, WithMetrics(NewMetrics(nil)))
	value := labelsOf(7)
	var key Key = textKey(value)
	if _, _, _, err := a.Allocate(b.Context(), key); err != nil {
		b.Fatal(err)
	}
	calls := backend.count("lock")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := a.Allocate(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
	if backend.count("lock") != calls {
		b.Error("a hit asked the backend")
	}
}

// BenchmarkAllocateNew allocates keys that no node uses, and releases them.
func BenchmarkAllocateNew(b *testing.B) {
	a := runningFor(b, newMemoryStore().backend("n"))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		value := labelsOf(n)
		key := textKey(value)
		if _, _, _, err := a.Allocate(b.Context(), key); err != nil {
			b.Fatal(err)
		}
		if _, err := a.Release(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatchCache adds the mappings of a full cluster of 65,535 identities. The reported bytes do not include the
// keys and their texts. With a range of 24 bits the pool stores more than with a range that is full.
func BenchmarkWatchCache(b *testing.B) {
	const identities = 65535
	keys := make([]Key, identities)
	for i := range keys {
		value := labelsOf(i)
		keys[i] = textKey(value)
	}
	for name, highest := range map[string]uint64{"full": identities, "24bits": 1 << 24} {
		b.Run(name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				b.StopTimer()
				before := heaptest.Live()
				b.StartTimer()
				c := newCore(1, highest, true)
				now := time.Now()
				for i, key := range keys {
					c.upsert(uint64(i+1), key, now)
				}
				b.StopTimer()
				bytes = float64(heaptest.Live()-before) / identities
				runtime.KeepAlive(c)
				b.StartTimer()
			}
			runtime.KeepAlive(keys)
			b.ReportMetric(bytes, "B/identity")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*identities), "ns/identity")
			if bytes > 250 {
				b.Errorf("%.0f bytes for each identity, want at most 250", bytes)
			}
		})
	}
}

// BenchmarkRefresh refreshes 10,000 keys in use, with a backend whose calls cost nothing.
func BenchmarkRefresh(b *testing.B) {
	const keys = 10_000
	backend := newMemoryStore().backend("n")
	a := runningFor(b, free{backend})
	for n := range keys {
		value := labelsOf(n)
		if _, _, _, err := a.Allocate(b.Context(), textKey(value)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		watcher{a}.OnReferencesLost()
		for left := keys; left > 0; runtime.Gosched() {
			a.mu.Lock()
			left = len(a.core.todo)
			a.mu.Unlock()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
}

// free is a backend whose writes do nothing.
type free struct{ *memoryBackend }

func (free) AllocateID(context.Context, uint64, Key, Lock) (bool, error)       { return true, nil }
func (free) AcquireReference(context.Context, uint64, Key, Lock) (bool, error) { return true, nil }
func (free) UpdateKey(context.Context, uint64, Key, bool, Lock) error          { return nil }

// labelsOf returns the text of a key of the usual size. The application's name and version differ from one key to the
// next.
func labelsOf(i int) string {
	return fmt.Sprintf("k8s:app.kubernetes.io/name=application-%d;k8s:app.kubernetes.io/version=1.%d;k8s:app=application-%d;"+
		"k8s:io.cilium.k8s.policy.cluster=cluster2;k8s:io.kubernetes.pod.namespace=namespace-%03d;k8s:team=team-%d;", i/3, i, i/3, i%100, i%20)
}
