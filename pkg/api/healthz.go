package api

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, Liveness{Status: "ok"})
	return nil
}

// readyz answers 503 with the reasons until the mesh is ready.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	ready, reasons := s.View.Ready()
	if ready {
		writeJSON(w, s.readyWithout())
		return nil
	}
	status := http.StatusServiceUnavailable
	p := problemf(status, "")
	answer := Readiness{Type: p.Type, Title: p.Title, Status: status, Reasons: make(map[string]string), Without: make(map[string]string)}
	maps.Copy(answer.Reasons, reasons)
	answer.Detail = "waiting for " + view.OneLine(reasons)
	w.Header().Set("Retry-After", retryAfter)
	writeBody(w, MediaTypeProblem, status, answer)
	return nil
}

// readyWithout is the answer of one who is ready: with all clusters, or because the
// sync timeout has passed and some are missing.
func (s *Server) readyWithout() Readiness {
	answer := Readiness{Ready: true, Reasons: map[string]string{}, Without: map[string]string{}}
	if s.Missing == nil {
		return answer
	}
	if maps.Copy(answer.Without, s.Missing()); len(answer.Without) > 0 {
		answer.Code = string(codes.ReadyWithout)
		answer.Detail = "ready since the sync timeout has passed, without " + view.OneLine(answer.Without)
	}
	return answer
}

// metrics serves what can be gathered: one failing collector does not hide the
// others.
func (s *Server) metrics() func(http.ResponseWriter, *http.Request) error {
	h := promhttp.HandlerFor(s.Gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: gatherLog{s.log}})
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// gatherLog takes what collectors complain about.
type gatherLog struct{ log *slog.Logger }

func (g gatherLog) Println(v ...any) {
	g.log.Warn("Gathering metrics", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}
