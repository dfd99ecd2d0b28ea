package store

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// value is one metric of a resource.
type value struct {
	gauge   float64
	count   uint64
	sum     float64
	buckets map[float64]uint64
}

// gathered returns the metric with this name and resource.
func gathered(t *testing.T, reg prometheus.Gatherer, name string, r wire.Resource) (v value, found bool) {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name || m.GetLabel()[0].GetValue() != string(r) {
				continue
			}
			h := m.GetHistogram()
			v = value{m.GetGauge().GetValue(), h.GetSampleCount(), h.GetSampleSum(), make(map[float64]uint64)}
			for _, b := range h.GetBucket() {
				v.buckets[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			return v, true
		}
	}
	return v, false
}

func TestEventsAreCountedUntilTheyAreVisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, reg := NewMetrics(), prometheus.NewPedanticRegistry()
		reg.MustRegister(m)
		const queued, propagation = "mesh_agent_store_queued_events", "mesh_agent_store_event_propagation_seconds"
		one := m.received(wire.IPs, 3)
		two := m.received(wire.IPs, 2)
		m.received(wire.IPs, 0)() // a progress response
		m.received("synced", 5)() // not a resource
		if v, _ := gathered(t, reg, queued, wire.IPs); v.gauge != 5 {
			t.Errorf("%v events are queued", v.gauge)
		}
		<-time.After(2 * time.Millisecond)
		one()
		<-time.After(time.Minute)
		two()
		if v, _ := gathered(t, reg, queued, wire.IPs); v.gauge != 0 {
			t.Errorf("%v events are queued in the end", v.gauge)
		}
		v, _ := gathered(t, reg, propagation, wire.IPs)
		if v.count != 5 || math.Abs(v.sum-(3*0.002+2*60.002)) > 1e-6 {
			t.Errorf("%d events, %v s in all", v.count, v.sum)
		}
		if len(v.buckets) != buckets {
			t.Errorf("%d buckets", len(v.buckets))
		}
		for bound, n := range v.buckets {
			want := uint64(0)
			if bound >= 0.002 {
				want = 3
			}
			if n != want {
				t.Errorf("up to %v s: %d events, want %d", bound, n, want)
			}
		}
		if _, found := gathered(t, reg, propagation, wire.Nodes); found {
			t.Error("a histogram of nothing")
		}
		(*Metrics)(nil).received(wire.IPs, 1)()
	})
}
