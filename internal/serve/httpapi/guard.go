package httpapi

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// guard refuses what a page in somebody's browser sends under a name that leads to
// this machine (DNS rebinding), what pages of other origins send, and what comes on
// a connection too many. The unix socket is out of the reach of browsers.
func (s *Server) guard(r *http.Request) error {
	from := transport.OriginOf(r.Context())
	switch {
	case from.Local:
		return nil
	case from.Over && r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
		return busy("there are too many connections to this agent")
	case !s.tls.Serves(r.Host, s.names):
		return problemf(http.StatusMisdirectedRequest,
			"this agent is not %q: ask it as localhost, by an IP address, by a name in the certificate of --tls-cert-file, or by one of --listen-names", r.Host)
	}
	if page, foreign := transport.ForeignPage(r); foreign {
		return problemf(http.StatusForbidden, "a page of %q asks, and only pages of this agent may: ask without a browser", page)
	}
	return nil
}

const retryAfter = "5" // seconds

// busy refuses what is beyond a limit.
func busy(why string) *api.Problem {
	return problemf(http.StatusServiceUnavailable, "%s: ask again in %s seconds, or over the unix socket", why, retryAfter)
}

// refused counts what the bounds have refused.
type refused struct{ *prometheus.CounterVec }

func newRefused() refused {
	return refused{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_api_refused_total",
		Help: "Refused connections and requests over TCP, by the limit that they exceeded: the flag is --listen-max-LIMIT.",
	}, []string{"limit"})}
}

// by are the counters of one limit.
func (r refused) by(limit string) transport.Refusals {
	return transport.Refusals{All: r.WithLabelValues(limit), Peer: r.WithLabelValues(limit + "-per-peer")}
}

// Collector returns the metrics of the server, to be registered once.
func (s *Server) Collector() prometheus.Collector {
	all := prometheus.NewRegistry()
	all.MustRegister(s.refused, s.discovered)
	return all
}
