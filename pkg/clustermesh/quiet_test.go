package clustermesh

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAQuietClusterIsNeverStale: a cluster without changes is fresh, however rare the probes that confirm it. With
// thousands of nodes their interval is longer than the age at which a copy is otherwise stale.
func TestAQuietClusterIsNeverStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *Params) {
		etcdOf(p).Timings.ProbeInterval = 300 * time.Millisecond
		etcdOf(p).ClusterSize = func() int { return 1000 } // a probe every second
		p.Timings.StaleAfter = 10 * time.Millisecond
	})
	w.remote("c1", 1).join()
	w.inState("c1", remotecluster.Ready)
	ips := func() remotecluster.Freshness { return w.mustStatus("c1").Families[wire.IPs].Freshness }
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
