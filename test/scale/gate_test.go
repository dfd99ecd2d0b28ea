package scale

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestNoRegression measures a mesh that is small enough for every run of the tests. Its bounds are generous, so that
// only the program can exceed them, and not other work of the machine:
//
//   - The agent needs about twice the floor's time here. Both run in turn, are disturbed
//     alike, and the median of five turns counts. 8 would result from a fixed delay
//     of a second and a half at the start, or from work that grows
//     with the square of the keys.
//   - CPU time hardly depends on other work: about 4 to 5 times the floor's. 10 would be
//     twice the work for each key.
//   - The live heap is exact: 460 bytes for each address, and here 100 more for
//     an agent without clusters. 800 would be a second index on addresses, a second copy
//     of every value, or records that hold unneeded data.
func TestNoRegression(t *testing.T) {
	waittest.Long(t)
	s := scenario{"gate", 4, contents.Remote, cluster(250, 500, 10, 1250, 12_500), bounds{ratio: 8, cpuRatio: 10, heap: 800}}
	p := build(t)
	dir := p.clusters(t, s)
	p.floor(t, dir) // warms the servers' caches for all runs
	agent, floor := p.measure(t, s, dir, runs)
	f := s.figures(agent, floor)
	t.Log(s.row(f))
	for _, text := range s.bounds.exceeded(f) {
		t.Error(text)
	}
}
