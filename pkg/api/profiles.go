package api

import (
	"net/http"
	"net/http/pprof"
)

// profileRoutes serve what go tool pprof asks for.
func profileRoutes() []route {
	one := func(path, id, summary string, handle http.HandlerFunc) route {
		return route{
			local: true, path: "/debug/pprof/" + path, id: id, summary: summary, media: "application/octet-stream",
			handle: func(w http.ResponseWriter, r *http.Request) error {
				handle(w, r)
				return nil
			},
		}
	}
	return []route{
		one("", "profiles", "The profiles of the process, as a page; below it, each by its name.", pprof.Index),
		one("cmdline", "profileCommandLine", "The command line of the process.", pprof.Cmdline),
		one("profile", "profileCPU", "Where CPU time goes, over the given seconds.", pprof.Profile),
		one("symbol", "profileSymbols", "The names of program counters.", pprof.Symbol),
		one("trace", "profileTrace", "A trace of the given seconds.", pprof.Trace),
	}
}
