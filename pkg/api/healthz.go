package api

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, Liveness{Status: "ok"})
	return nil
}

// readyz answers 503 with the reasons until the mesh is ready.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	ready, reasons := s.Mesh.Ready()
	if ready {
		writeJSON(w, Readiness{Ready: true, Reasons: map[string]string{}})
		return nil
	}
	status := http.StatusServiceUnavailable
	p := problemf(status, "")
	answer := Readiness{Type: p.Type, Title: p.Title, Status: status, Reasons: make(map[string]string)}
	maps.Copy(answer.Reasons, reasons)
	var details []string
	for _, cluster := range slices.Sorted(maps.Keys(reasons)) {
		details = append(details, fmt.Sprintf("%s: %s", cluster, reasons[cluster]))
	}
	answer.Detail = "waiting for " + strings.Join(details, "; ")
	writeBody(w, MediaTypeProblem, status, answer)
	return nil
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
