package endpointslices

import "github.com/prometheus/client_golang/prometheus"

// Metrics are those of what is written. The gauges are zero in a process that does not lead.
type Metrics struct {
	written, deleted, failed prometheus.Counter
	slices, endpoints        prometheus.Gauge
}

// NewMetrics returns metrics that nobody has registered.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &Metrics{
		written:   counter("mesh_agent_endpointslices_written_total", "EndpointSlices of remote backends that were applied."),
		deleted:   counter("mesh_agent_endpointslices_deleted_total", "EndpointSlices of remote backends that were deleted."),
		failed:    counter("mesh_agent_endpointslices_failed_total", "Requests about EndpointSlices of remote backends that failed."),
		slices:    gauge("mesh_agent_endpointslices", "EndpointSlices of remote backends in the own cluster; 0 while another process leads."),
		endpoints: gauge("mesh_agent_endpointslices_endpoints", "Endpoints in them, whatever their conditions."),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.written, m.deleted, m.failed, m.slices, m.endpoints}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, one := range m.all() {
		one.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, one := range m.all() {
		one.Collect(to)
	}
}

func (m *Metrics) count(slices, endpoints int) {
	m.slices.Add(float64(slices))
	m.endpoints.Add(float64(endpoints))
}

func (m *Metrics) reset() {
	m.slices.Set(0)
	m.endpoints.Set(0)
}
