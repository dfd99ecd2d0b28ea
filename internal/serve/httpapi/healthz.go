package httpapi

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, api.Liveness{Status: "ok"})
	return nil
}

// readyz answers 503 with the reasons until the mesh is ready.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	ready, reasons := s.View.Ready()
	answer := api.Readiness{Ready: ready, Reasons: map[string]string{}, Without: map[string]string{}}
	if !ready {
		p := problemf(http.StatusServiceUnavailable, "")
		answer.Type, answer.Title, answer.Status = p.Type, p.Title, p.Status
		maps.Copy(answer.Reasons, reasons)
		answer.Detail = "waiting for " + view.OneLine(reasons)
		w.Header().Set("Retry-After", retryAfter)
		writeBody(w, api.MediaTypeProblem, p.Status, answer)
		return nil
	}
	if s.Missing != nil {
		maps.Copy(answer.Without, s.Missing())
	}
	if len(answer.Without) > 0 {
		answer.Code = string(codes.ReadyWithout)
		answer.Detail = "ready since the sync timeout has passed, without " + view.OneLine(answer.Without)
	}
	writeJSON(w, answer)
	return nil
}

// metrics serves all metrics that can be gathered: a failing collector does not hide the others.
func (s *Server) metrics() func(http.ResponseWriter, *http.Request) error {
	return handled(promhttp.HandlerFor(s.Gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: gatherLog{s.log}}))
}

// gatherLog logs the errors of collectors.
type gatherLog struct{ log *slog.Logger }

func (g gatherLog) Println(v ...any) {
	g.log.Warn("Gathering metrics", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}
