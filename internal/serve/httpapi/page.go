package httpapi

import (
	"net/http"

	"github.com/mesh-agent/mesh-agent/internal/serve/ui"
)

// WithPage makes the server serve the web page.
func WithPage(p *ui.Page) Option { return func(s *Server) { s.page = p } }

// pageRoutes are the routes of the page; none without a page. The page requests the paths of the API, so it shows a
// user only what that user may request.
func (s *Server) pageRoutes() []route {
	if s.page == nil {
		return nil
	}
	return []route{
		{
			path: "/ui/{file...}", id: "page", summary: "The web page of the agent, and its files.", media: "text/html",
			errors: []int{http.StatusNotFound}, handle: func(w http.ResponseWriter, r *http.Request) error {
				if name := r.PathValue("file"); !s.page.Serve(w, r, name) {
					return notFound("the page has no file %q: its address is /ui/", name)
				}
				return nil
			},
		},
		{
			path: "/ui", id: "pageWithoutSlash", summary: "Redirects to /ui/.", media: "text/html",
			handle: func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Location", "ui/") // relative: the agent may be behind a path of another server
				w.WriteHeader(http.StatusTemporaryRedirect)
				return nil
			},
		},
	}
}
