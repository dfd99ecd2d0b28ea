package mirror

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// TestALargeClusterFitsFourTimes: 5,000 nodes and 250,000 addresses, of the size that
// they have in a cluster.
func TestALargeClusterFitsFourTimes(t *testing.T) {
	t.Parallel()
	entries := newWorld(t).remote("a", 1, func(c *contents.Cluster) { c.Nodes, c.Addresses = 50, 500 }).Contents()
	for r, wanted := range map[wire.Resource]int{wire.Nodes: 4 * 5000, wire.IPs: 4 * 250_000} {
		n, bytes, prefix := 0, 0, r.Prefix("a", false)
		for key, value := range entries {
			if name, of := strings.CutPrefix(key, prefix); of {
				n++
				bytes += len(name) + len(value)
			}
		}
		if n == 0 {
			t.Fatalf("there are no %s", r)
		}
		size := int64(bytes / n)
		t.Logf("%s have %d bytes", r, size)
		if has := DefaultBudget().Share(r); has.Keys < wanted || has.Bytes < size*int64(wanted) {
			t.Errorf("%s: there is room for %d keys and %d bytes, %d and %d are needed", r, has.Keys, has.Bytes, wanted, size*int64(wanted))
		}
	}
}
