package store

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Metrics measure how fast events become visible, for all watches together, by
// resource. It is a [prometheus.Collector]; a nil one counts nothing.
//
// All events of a batch become visible at once, so they have the same age and are counted in one step.
type Metrics struct {
	byResource map[wire.Resource]*flow // never changes

	propagation, queued *prometheus.Desc
}

type flow struct {
	queued  atomic.Int64 // received and not applied yet
	buckets [buckets]atomic.Uint64
	count   atomic.Uint64
	nanos   atomic.Int64 // the sum of all ages
}

const buckets = 16 // of the histogram

func bounds() [buckets]float64 { // in seconds
	return [...]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		byResource: make(map[wire.Resource]*flow),
		propagation: prometheus.NewDesc("mesh_agent_store_event_propagation_seconds",
			"Time from the receipt of a kvstore event to its being visible in the tables.", []string{"resource"}, nil),
		queued: prometheus.NewDesc("mesh_agent_store_queued_events",
			"Kvstore events that were received and are not visible yet.", []string{"resource"}, nil),
	}
	for _, r := range wire.Resources() {
		m.byResource[r] = new(flow)
	}
	return m
}

// received counts events. The caller calls the returned function when they are visible.
func (m *Metrics) received(r wire.Resource, events int) (visible func()) {
	if m == nil || events == 0 || m.byResource[r] == nil {
		return func() {}
	}
	f, since := m.byResource[r], time.Now()
	f.queued.Add(int64(events))
	return func() {
		f.queued.Add(int64(-events))
		f.observe(time.Since(since), events)
	}
}

func (f *flow) observe(age time.Duration, events int) {
	for i, bound := range bounds() {
		if age.Seconds() <= bound {
			f.buckets[i].Add(uint64(events)) //nolint:gosec // not negative
			break
		}
	}
	f.nanos.Add(age.Nanoseconds() * int64(events))
	f.count.Add(uint64(events)) //nolint:gosec // not negative
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.propagation
	ch <- m.queued
}

// Collect implements [prometheus.Collector]. A resource without events has no propagation metric.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for r, f := range m.byResource {
		ch <- prometheus.MustNewConstMetric(m.queued, prometheus.GaugeValue, float64(f.queued.Load()), string(r))
		count := f.count.Load()
		if count == 0 {
			continue
		}
		upTo, below := make(map[float64]uint64), uint64(0)
		for i, bound := range bounds() {
			below += f.buckets[i].Load()
			upTo[bound] = min(below, count) // events observed after count was read are left out
		}
		sum := time.Duration(f.nanos.Load()).Seconds()
		ch <- prometheus.MustNewConstHistogram(m.propagation, count, sum, upTo, string(r))
	}
}
