package httpapi

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// guard refuses requests of a web page under a name that resolves to this machine (DNS rebinding), requests of pages
// of other origins, and requests on connections above the limit. Browsers cannot reach the unix socket.
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

// busy returns the error for a request above a limit.
func busy(why string) *api.Problem {
	return problemf(http.StatusServiceUnavailable, "%s: ask again in %s seconds, or over the unix socket", why, retryAfter)
}

// refused counts the refusals of the limits.
type refused struct{ *prometheus.CounterVec }

func newRefused() refused {
	return refused{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_api_refused_total",
		Help: "Refused connections and requests over TCP, by the limit that they exceeded: the flag is --listen-max-LIMIT.",
	}, []string{"limit"})}
}

// by returns the counters of one limit.
func (r refused) by(limit string) transport.Refusals {
	return transport.Refusals{All: r.WithLabelValues(limit), Peer: r.WithLabelValues(limit + "-per-peer")}
}

// Collector returns the metrics of the server, to be registered once.
func (s *Server) Collector() prometheus.Collector {
	all := prometheus.NewRegistry()
	all.MustRegister(s.refused, s.discovered)
	return all
}
