package endpointslices

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
)

// Metrics are those of the slices that are written. The gauges are zero in a process that does not lead.
type Metrics struct {
	reconcile.Metrics
	slices, endpoints, refused prometheus.Gauge
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	m := &Metrics{Metrics: reconcile.NewMetrics("mesh_agent_endpointslices", "EndpointSlices of remote backends")}
	m.slices = m.Gauge("mesh_agent_endpointslices", "EndpointSlices of remote backends in the own cluster; 0 while another process leads.")
	m.endpoints = m.Gauge("mesh_agent_endpointslices_endpoints", "Endpoints in them, in any condition.")
	m.refused = m.Gauge("mesh_agent_endpointslices_endpoints_refused", "Remote backends that are in no EndpointSlice, because their addresses are those of the own cluster, or for special use.")
	return m
}

func (m *Metrics) reset() {
	m.slices.Set(0)
	m.endpoints.Set(0)
	m.refused.Set(0)
}
