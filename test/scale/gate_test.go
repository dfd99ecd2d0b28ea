package scale

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/sim"
)

// TestNoRegression measures a mesh that is small enough for every run of the
// tests. Its bounds are generous, so that only the program can break them, not
// what else the machine does:
//
//   - The agent needs about 3 times the floor's time here, where starting it counts
//     for more than in a large mesh. The best of five turns is taken, and both
//     suffer from others alike. 8 is what one more pass over the data, or a fixed
//     delay of half a second at the start, brings about.
//   - CPU time hardly depends on others: about 5 times the floor's. 10 allows for
//     cold caches, and is the doubling of all work for a key.
//   - The live heap is exact: 460 bytes for each address, and here 60 more for what
//     an agent without clusters has. 800 is a second index on addresses, a second copy
//     of every value, or records that hold what they should not.
func TestNoRegression(t *testing.T) {
	s := scenario{"gate", 4, sim.Remote, cluster(250, 500, 10, 1250, 12_500), bounds{ratio: 8, cpuRatio: 10, heap: 800}}
	p := build(t)
	dir := p.clusters(t, s)
	p.floor(t, dir) // the servers' caches are warm for everybody
	agent, floor := p.measure(t, s, dir, runs)
	f := s.figures(agent, floor)
	t.Log(s.row(f))
	for _, text := range s.bounds.exceeded(f) {
		t.Error(text)
	}
}
