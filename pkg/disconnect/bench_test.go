package disconnect

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStep is a look at a mesh of 254 clusters in which all is well.
func BenchmarkStep(b *testing.B) {
	m, now, ev := New(DefaultPolicy(), patience), epoch, map[string]Evidence{}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		for i := range 254 {
			ev[fmt.Sprintf("cluster-%03d", i)] = Evidence{Synced: true, Fresh: true, AsOf: now, Connected: epoch, Heartbeat: now}
		}
		if done, _ := m.Step(now, ev); len(done) > 0 {
			b.Fatal(done)
		}
	}
}
