package clustermesh

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// A cluster that comes back is synced again within 10 seconds, also when it was
// away for so long that the pauses between the attempts have grown to their
// longest. The timings are those of production.
func TestBackWithinTenSeconds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	w := newWorld(t, func(p *Params) {
		p.KVStore, p.Timings = etcd.DefaultOptions(), remotecluster.DefaultTimings()
	})
	killed, frozen := w.remote("killed", 1), w.remote("frozen", 2)
	killed.join()
	frozen.join()
	w.inState("killed", remotecluster.Ready)
	w.inState("frozen", remotecluster.Ready)
	killed.converges()
	frozen.converges()
	killed.etcd.Kill(t)
	frozen.etcd.Freeze(t)
	before := killed.inView()
	// 0.5 s, half as long again each time: after eight attempts the longest
	// pause is reached.
	w.until("the longest pause", func() bool { return w.mustStatus("killed").Failures >= 8 })
	killed.kept(before)
	if longest := w.mesh.Timings.RetryMax * 3 / 2; longest > 8*time.Second { // half as long again with jitter
		t.Errorf("pauses of %s leave no time to connect", longest)
	}
	killed.etcd.Restart(t)
	back := time.Now()
	w.inState("killed", remotecluster.Ready)
	t.Logf("ready %s after the kill", time.Since(back).Round(10*time.Millisecond))
	killed.converges()

	w.until("an attempt that gets no answer", func() bool { return w.mustStatus("frozen").Failures >= 2 })
	frozen.etcd.Thaw(t)
	back = time.Now()
	w.inState("frozen", remotecluster.Ready)
	t.Logf("ready %s after the freeze", time.Since(back).Round(10*time.Millisecond))
	frozen.converges()
}
