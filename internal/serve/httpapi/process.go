package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/pprof"
	"reflect"
	runtimepprof "runtime/pprof"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

func (s *Server) debugRoutes() []route {
	settings := says("/v1/debug/config", "debug-config", "The settings in force, secrets left out.", func() api.Settings { return s.Settings })
	settings.local = true
	return []route{
		{
			local: true, path: "/v1/debug/goroutines", id: "debug-goroutines", summary: "The stacks of all goroutines, as text.",
			media: "text/plain", handle: func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_ = runtimepprof.Lookup("goroutine").WriteTo(w, allStacks) // an error: the client is gone
				return nil
			},
		},
		settings,
	}
}

// allStacks is the debug level of pprof that prints the stack of each goroutine, as a panic does.
const allStacks = 2

// profileRoutes are the routes for go tool pprof.
func profileRoutes() []route {
	one := func(path, id, summary string, handle http.HandlerFunc) route {
		return route{local: true, path: "/debug/pprof/" + path, id: id, summary: summary, media: "application/octet-stream", handle: handled(handle)}
	}
	return []route{
		one("", "profiles", "The index of the profiles of the process.", pprof.Index),
		one("cmdline", "profileCommandLine", "The command line of the process.", pprof.Cmdline),
		one("profile", "profileCPU", "A CPU profile of the given number of seconds.", pprof.Profile),
		one("symbol", "profileSymbols", "The names of program counters.", pprof.Symbol),
		one("trace", "profileTrace", "An execution trace of the given number of seconds.", pprof.Trace),
	}
}

const maxLevelBody = 1 << 10 // bytes of a request to change the level

func (s *Server) logLevelRoutes() []route {
	return []route{
		says("/v1/log-level", "getLogLevel", "The log level.", func() api.LogLevel { return api.LogLevel{Level: s.LogLevel.Get()} }),
		{
			method: http.MethodPut, local: true,
			path: "/v1/log-level", id: "setLogLevel", summary: "Set the log level until the agent ends.",
			body: reflect.TypeFor[api.LogLevel](), answer: reflect.TypeFor[api.LogLevel](), errors: []int{http.StatusBadRequest},
			handle: s.setLogLevel,
		},
	}
}

// setLogLevel accepts the level as JSON or as plain text, independent of the request's Content-Type.
func (s *Server) setLogLevel(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevelBody))
	if err != nil {
		return badRequest("body: %v", err)
	}
	level := strings.TrimSpace(string(body))
	if strings.HasPrefix(level, "{") {
		var l api.LogLevel
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
	writeJSON(w, api.LogLevel{Level: s.LogLevel.Get()})
	return nil
}

// configKeyRoute returns the key to clients of the unix socket, which can read the client files anyway.
func (s *Server) configKeyRoute() route {
	r := says("/v1/config-key", "config-key", "The key of configHash, to compare client files with it.", func() api.ConfigKey { return api.ConfigKey{Key: s.configKey} })
	r.local = true
	return r
}
