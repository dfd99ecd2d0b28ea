package scale

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// The maximum CPU of an agent with idle clusters, as a share of one core; the duration of the measurement; and the
// pause before it, in which the work of the start ends.
const (
	idleBound = 0.015
	idleTime  = time.Minute
	idlePause = 20 * time.Second
)

// BenchmarkIdle connects to 254 clusters, each with an etcd of its own, in which only the heartbeat changes, and
// measures the CPU that the agent needs for this. It fails when that is above the bound.
func BenchmarkIdle(b *testing.B) {
	p := build(b)
	s := scenario{clusters: 254, mode: contents.Remote, each: cluster(2, 5, 1, 5, 20)}
	a, end := p.start(b, "run", "--clustermesh-config", p.clusters(b, s), "--clustermesh-sync-timeout", "1h")
	defer end()
	must(b, a.ready(b.Context()))
	var share, now float64
	for b.Loop() {
		used, err := a.used(b, idlePause, idleTime)
		must(b, err)
		share = max(share, used.Seconds()/idleTime.Seconds())
		now, _, err = resident(a.cmd.Process.Pid)
		must(b, err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*share, "%-of-a-core")
	b.ReportMetric(now/(1<<20), "resident-MiB")
	if share > idleBound {
		b.Errorf("%.2f %% of a core for nothing, %.2f are allowed", 100*share, 100*idleBound)
	}
}

// used is the CPU time of the agent in a period, which begins after a pause.
func (a process) used(tb testing.TB, pause, while time.Duration) (time.Duration, error) {
	tb.Helper()
	var at [2]float64
	for i, d := range []time.Duration{pause, while} {
		err := waiting.Sleep(tb.Context(), d)
		if err == nil {
			at[i], err = cpuSeconds(a.cmd.Process.Pid)
		}
		if err != nil {
			return 0, err
		}
	}
	return time.Duration((at[1] - at[0]) * float64(time.Second)), nil
}
