package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// refused counts what the bounds have refused.
type refused struct{ *prometheus.CounterVec }

func newRefused() refused {
	return refused{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_api_refused_total",
		Help: "Connections and requests over TCP that were refused, by the bound that they exceeded: the flag is --listen-max-LIMIT.",
	}, []string{"limit"})}
}

// by are the counters of one limit.
func (r refused) by(limit string) transport.Refusals {
	return transport.Refusals{All: r.WithLabelValues(limit), Peer: r.WithLabelValues(limit + "-per-peer")}
}

// Collector returns the metrics of the server, to be registered once.
func (s *Server) Collector() prometheus.Collector { return s.refused }
