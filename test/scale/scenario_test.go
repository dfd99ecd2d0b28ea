package scale

import (
	"fmt"
	"math"
	"slices"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// scenario is a mesh, and what the agent may need for it.
type scenario struct {
	name     string
	clusters int
	mode     contents.Mode
	each     contents.Cluster
	bounds   bounds
}

// bounds are the limits of a scenario; zero means no limit.
type bounds struct {
	ratio    float64 // of the agent's time to the floor's
	cpuRatio float64 // of the agent's CPU time to the floor's
	cpu      float64 // µs for each key
	heap     float64 // live bytes for each address
	peak     float64 // MiB resident
}

// scenarios are those of the benchmark. M is 8 clusters with 464,000 keys.
func scenarios() []scenario {
	ofM := bounds{ratio: 3, cpu: 8, heap: 500, peak: 450}
	m := cluster(1000, 2000, 10, 5000, 50_000)
	return []scenario{
		{"M-etcd-each", 8, contents.Remote, m, ofM},
		{"M-one-etcd", 8, contents.Cached, m, ofM},
		{"64-clusters", 64, contents.Remote, cluster(100, 200, 5, 500, 2000), bounds{ratio: 3, peak: 350}},
		{"254-clusters", 254, contents.Remote, cluster(20, 50, 3, 100, 500), bounds{ratio: 3}},
	}
}

// cluster is a cluster in the form of Cilium 1.19, with the mix of keys that other benchmarks use: without endpoint
// slices.
func cluster(nodes, services, backends, identities, addresses int) contents.Cluster {
	c := contents.Default("", 0)
	c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = nodes, services, backends, identities, addresses
	c.EndpointSlices, c.ServiceExports = false, false
	return c
}

func (s scenario) keys() int      { return s.clusters * s.each.Keys() }
func (s scenario) addresses() int { return s.clusters * s.each.Addresses }

// descriptions are the clusters themselves.
func (s scenario) descriptions() []contents.Cluster {
	all := make([]contents.Cluster, s.clusters)
	for i := range all {
		c := s.each
		c.Name, c.ID, c.Mode = fmt.Sprint("cluster", i+1), uint32(i+1), s.mode
		all[i] = c
	}
	return all
}

// figures are the results of several runs.
type figures struct {
	agent, floor              times
	ratio                     float64 // the median over the turns, because in one turn both had the same disturbance
	cpu, floorCPU, cpuRatio   float64 // µs for each key, the least of all runs
	heap                      float64 // live bytes for each address, the most of all runs
	peak, floorPeak, resident float64 // MiB resident, the most of all runs
}

// times are seconds.
type times struct{ least, median float64 }

// figures computes them from the runs of the agent and of the floor, in their order.
func (s scenario) figures(agent, floor []result) figures {
	seconds := func(r result) float64 { return r.Seconds }
	cpu := func(r result) float64 { return r.CPU / float64(s.keys()) * 1e6 }
	ratios := make([]float64, len(agent))
	for i := range agent {
		ratios[i] = agent[i].Seconds / floor[i].Seconds
	}
	slices.Sort(ratios)
	f := figures{
		agent:     times{least(agent, seconds), median(agent, seconds)},
		floor:     times{least(floor, seconds), median(floor, seconds)},
		ratio:     ratios[len(ratios)/2],
		cpu:       least(agent, cpu),
		floorCPU:  least(floor, cpu),
		heap:      most(agent, func(r result) float64 { return r.Heap }) / float64(s.addresses()),
		peak:      most(agent, func(r result) float64 { return r.Peak }) / (1 << 20),
		floorPeak: most(floor, func(r result) float64 { return r.Peak }) / (1 << 20),
		resident:  most(agent, func(r result) float64 { return r.Resident }) / (1 << 20),
	}
	f.cpuRatio = f.cpu / f.floorCPU
	return f
}

// exceeded describes the bounds that the figures exceed.
func (b bounds) exceeded(f figures) (out []string) {
	for _, one := range []struct {
		what       string
		got, bound float64
	}{
		{"times the floor's seconds", f.ratio, b.ratio},
		{"times the floor's CPU", f.cpuRatio, b.cpuRatio},
		{"µs of CPU for each key", f.cpu, b.cpu},
		{"bytes of live heap for each address", f.heap, b.heap},
		{"MiB resident at the most", f.peak, b.peak},
	} {
		if one.bound > 0 && (one.got > one.bound || math.IsNaN(one.got)) {
			out = append(out, fmt.Sprintf("%.2f %s, at most %g are allowed", one.got, one.what, one.bound))
		}
	}
	return out
}

// row is the figures as a row of the table in docs/performance.md.
func (s scenario) row(f figures) string {
	return fmt.Sprintf("| %s | %.2f (%.2f) | %.2f (%.2f) | %.1f | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f |", s.name,
		f.floor.least, f.floor.median, f.agent.least, f.agent.median, f.ratio,
		f.floorCPU, f.cpu, f.heap, f.floorPeak, f.peak, f.resident)
}
