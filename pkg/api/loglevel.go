package api

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// maxLevelBody is how much of a request to change the level is read, in bytes.
const maxLevelBody = 1 << 10

func (s *Server) logLevelRoutes() []route {
	return []route{
		{
			path: "/v1/log-level", id: "getLogLevel", summary: "How much the log tells.",
			answer: reflect.TypeFor[LogLevel](), handle: s.getLogLevel,
		},
		{
			method: http.MethodPut, local: true,
			path: "/v1/log-level", id: "setLogLevel", summary: "Make the log tell more or less, at once and until the agent ends.",
			body: reflect.TypeFor[LogLevel](), answer: reflect.TypeFor[LogLevel](), errors: []int{http.StatusBadRequest},
			handle: s.setLogLevel,
		},
	}
}

func (s *Server) getLogLevel(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, LogLevel{s.LogLevel.Get()})
	return nil
}

// setLogLevel takes the level as JSON or as plain text, whatever the request
// calls it.
func (s *Server) setLogLevel(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevelBody))
	if err != nil {
		return badRequest("body: %v", err)
	}
	level := strings.TrimSpace(string(body))
	if strings.HasPrefix(level, "{") {
		var l LogLevel
		d := json.NewDecoder(strings.NewReader(level))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return badRequest(`body: want {"level":"debug"}, or the level as plain text: %v`, err)
		}
		level = l.Level
	}
	if err := s.LogLevel.Set(level); err != nil {
		return badRequest("%v", err)
	}
	return s.getLogLevel(w, r)
}
