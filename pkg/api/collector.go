package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// collector tells what the bounds have refused.
type collector struct {
	server  *Server
	refused *prometheus.Desc
}

// Collector returns the metrics of the server, to be registered once.
func (s *Server) Collector() prometheus.Collector {
	return &collector{s, prometheus.NewDesc("mesh_agent_api_refused_total",
		"Connections and requests over TCP that were refused, by the bound that they exceeded: the flag is --listen-max-LIMIT.", []string{"limit"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.refused }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.server
	for limit, counts := range map[string]*transport.Refusals{
		"connections": &s.connections.Refused, "watches": &s.watches.Refused,
		"answers": &s.answers.Refused, "states": &s.states.Refused,
	} {
		ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(counts.All.Load()), limit)
		ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(counts.Peer.Load()), limit+"-per-peer")
	}
}
