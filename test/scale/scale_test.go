package scale

import "testing"

// runs is how often each scenario is measured, the agent and the floor in turn.
const runs = 5

// measure runs the floor and the agent on the scenario.
func (p programs) measure(tb testing.TB, s scenario, dir string, runs int) (agent, floor []result) {
	tb.Helper()
	return turns(tb, s, runs, func() result { return p.run(tb, dir) }, func() result { return p.floor(tb, dir) })
}

// turns runs the floor and the agent alternately; both must read all keys.
func turns(tb testing.TB, s scenario, runs int, runAgent, runFloor func() result) (agent, floor []result) {
	tb.Helper()
	for range runs {
		floor = append(floor, runFloor())
		agent = append(agent, runAgent())
	}
	for _, r := range append(floor, agent...) {
		if r.Keys != s.keys() {
			tb.Fatalf("%d keys were read, there are %d", r.Keys, s.keys())
		}
	}
	return agent, floor
}

// report reports the figures of an agent and of a mirror.
func (s scenario) report(b *testing.B, f figures) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(f.agent.median, "s")
	b.ReportMetric(f.floor.median, "floor-s")
	b.ReportMetric(f.ratio, "times-floor")
	b.ReportMetric(f.peak, "peak-MiB")
	b.Log(s.row(f))
}

// BenchmarkScenario syncs whole meshes. It fails when a bound is exceeded, so
// the machine should have nothing else to do.
func BenchmarkScenario(b *testing.B) {
	p := build(b)
	for _, s := range scenarios() {
		b.Run(s.name, func(b *testing.B) {
			dir := p.clusters(b, s)
			p.floor(b, dir) // warms the servers' caches for all runs
			var agent, floor []result
			for b.Loop() {
				a, f := p.measure(b, s, dir, runs)
				agent, floor = append(agent, a...), append(floor, f...)
			}
			f := s.figures(agent, floor)
			s.report(b, f)
			b.ReportMetric(f.cpu, "µs-CPU/key")
			b.ReportMetric(f.floorCPU, "floor-µs-CPU/key")
			b.ReportMetric(f.heap, "heap-B/address")
			b.ReportMetric(f.resident, "resident-MiB")
			for _, text := range s.bounds.exceeded(f) {
				b.Error(text)
			}
		})
	}
}
