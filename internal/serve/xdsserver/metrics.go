package xdsserver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
)

// Metrics count the requests of clients and the answers to them. It is a [prometheus.Collector].
type Metrics struct {
	prometheus.Collector // of all of them
	streams              *prometheus.GaugeVec
	requests             *prometheus.CounterVec
	responses            *prometheus.CounterVec
	rejected             *prometheus.CounterVec
	refused              *prometheus.CounterVec
	names                *prometheus.GaugeVec
	leftOut              *prometheus.GaugeVec
}

// Reasons of refusals, as label values.
const (
	tooManyConnections = "connections"
	tooManyStreams     = "streams"
	tooManyNames       = "names"
	tooLong            = "request size"
	tooMuchMemory      = "memory"
	tooSlow            = "unconfirmed"
	tooEarly           = "not ready"
)

func reasons() []string {
	return []string{tooManyConnections, tooManyStreams, tooManyNames, tooLong, tooMuchMemory, tooSlow, tooEarly}
}

// NewMetrics returns metrics whose counts are all zero.
func NewMetrics() *Metrics {
	all := prometheus.NewRegistry()
	counter := func(name, help, label string) *prometheus.CounterVec {
		return promauto.With(all).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help, label string) *prometheus.GaugeVec {
		return promauto.With(all).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	}
	m := &Metrics{
		Collector: all,
		streams:   gauge("mesh_agent_xds_streams", "Streams of clients that are open, by variant of the protocol.", "variant"),
		requests:  counter("mesh_agent_xds_requests_total", "Requests of clients, by type of resource. Each answer is confirmed by one.", "type"),
		responses: counter("mesh_agent_xds_responses_total", "Answers and updates that were sent, by type of resource.", "type"),
		rejected:  counter("mesh_agent_xds_rejected_total", "Answers and updates that a client has rejected (NACK), by type of resource.", "type"),
		refused: counter("mesh_agent_xds_refused_total",
			"Connections, streams and requests that were refused, by limit, or because not every cluster was known yet.", "reason"),
		names: gauge("mesh_agent_xds_names", "Different names of resources that clients follow, by type.", "type"),
		leftOut: gauge("mesh_agent_xds_left_out",
			"Backends of followed services (type endpoints) and ports of services (type clusters) for which there is no room.", "type"),
	}
	for _, k := range []kind{clusterKind, endpointKind} {
		m.leftOut.WithLabelValues(k.String())
	}
	for k := range kinds + 1 {
		m.requests.WithLabelValues(k.String())
		if k < kinds {
			m.names.WithLabelValues(k.String())
			m.responses.WithLabelValues(k.String())
			m.rejected.WithLabelValues(k.String())
		}
	}
	for _, reason := range reasons() {
		m.refused.WithLabelValues(reason)
	}
	for _, variant := range []string{WholeState.String(), Incremental.String()} {
		m.streams.WithLabelValues(variant)
	}
	return m
}

func (m *Metrics) refusals(reason string) transport.Refusals {
	c := m.refused.WithLabelValues(reason)
	return transport.Refusals{All: c, Peer: c}
}

// numRefused is the sum of all refusals.
func (m *Metrics) numRefused() (n uint64) {
	for _, reason := range reasons() {
		var now dto.Metric
		if m.refused.WithLabelValues(reason).Write(&now) == nil {
			n += uint64(now.GetCounter().GetValue())
		}
	}
	return n
}
