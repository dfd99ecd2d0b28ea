package clustermesh

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// A cluster in which nothing happens is fresh, however far apart the probes are that confirm it:
// with thousands of nodes that is more than the age at which a copy is stale otherwise.
func TestAQuietClusterIsNeverStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *Params) {
		p.KVStore.Timings.ProbeInterval = 300 * time.Millisecond
		p.KVStore.ClusterSize = func() int { return 1000 } // so every second
		p.Timings.StaleAfter = 10 * time.Millisecond
	})
	w.remote("c1", 1).join()
	w.inState("c1", remotecluster.Ready)
	ips := func() remotecluster.Freshness { return w.mustStatus("c1").Sources[wire.IPs].Freshness }
	for range 2 {
		before := ips().AsOf
		w.until("the next confirmation", func() bool {
			f := ips()
			if f.State != remotecluster.FreshnessSynced {
				t.Errorf("%s, %s after %s", f.State, time.Since(f.AsOf), f.AsOf)
			}
			return f.AsOf.After(before)
		})
	}
}
