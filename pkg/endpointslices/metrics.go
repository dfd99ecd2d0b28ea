package endpointslices

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of what is written. The gauges are zero in a process that does not lead.
type Metrics struct {
	prometheus.Collector     // of all of them
	written, deleted, failed prometheus.Counter
	slices, endpoints        prometheus.Gauge
}

// NewMetrics returns metrics that nobody has registered.
func NewMetrics() *Metrics {
	all := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(all).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(all).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &Metrics{
		Collector: all,
		written:   counter("mesh_agent_endpointslices_written_total", "EndpointSlices of remote backends that were applied."),
		deleted:   counter("mesh_agent_endpointslices_deleted_total", "EndpointSlices of remote backends that were deleted."),
		failed:    counter("mesh_agent_endpointslices_failed_total", "Requests about EndpointSlices of remote backends that failed."),
		slices:    gauge("mesh_agent_endpointslices", "EndpointSlices of remote backends in the own cluster; 0 while another process leads."),
		endpoints: gauge("mesh_agent_endpointslices_endpoints", "Endpoints in them, whatever their conditions."),
	}
}

func (m *Metrics) reset() {
	m.slices.Set(0)
	m.endpoints.Set(0)
}
