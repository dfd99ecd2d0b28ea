package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/internal/serve/ui"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Limits of a connection.
const (
	headerTimeout = 10 * time.Second // for the client to send its request
	idleTimeout   = 2 * time.Minute  // between requests
	stopTimeout   = 3 * time.Second  // for running requests when the server stops
	answerTimeout = 10 * time.Minute // for a whole answer over TCP, because a snapshot is kept for it
	maxHeader     = 16 << 10         // bytes of a request's headers
)

// Server answers requests about what its parameters describe.
type Server struct {
	Params
	log       *slog.Logger
	boundary  *boundary.Boundary // counts and logs failures of requests
	now       func() time.Time
	heartbeat time.Duration // between heartbeats of a watch
	firstWait time.Duration // for the peer's turn of a first state, before the watch is refused
	routes    []route
	resources []described // all resources that can be listed and watched
	mux       *http.ServeMux
	openAPI   func() ([]byte, error) // created at the first request for it

	listeners *transport.Listeners // set by Listen, before Serve
	profiles  bool                 // serve profiles of the process

	buffers   *transport.BufferPool // of watches
	large     *transport.Large      // objects that are being written
	streams   *transport.Streams
	configKey string         // key of the hashes of client files
	page      *ui.Page       // nil: no page
	tls       *transport.TLS // nil: TCP is plain
	names     []string       // more names of this host

	limits                        transport.Limits
	connections, watches, answers *transport.Gate
	states                        *transport.States
	refused                       refused
	discovered                    discovered
	// stopping ends when the server stops: answers without an end then stop.
	stopping context.Context
	stop     context.CancelFunc
}

// Option changes what a server serves.
type Option func(*Server)

// WithProfiles makes the server serve profiles of the process over the unix socket.
func WithProfiles() Option { return func(s *Server) { s.profiles = true } }

// WithLimits sets the limits of clients over TCP, instead of [transport.DefaultLimits].
func WithLimits(l transport.Limits) Option { return func(s *Server) { s.limits = l } }

// WithBoundary sets the boundary that counts and logs failures of requests.
func WithBoundary(b *boundary.Boundary) Option { return func(s *Server) { s.boundary = b } }

// WithNames sets more host names that a request may be for: one that begins with a dot is for all names that end with
// it. They must be names that an attacker cannot make resolve to this machine.
func WithNames(names []string) Option { return func(s *Server) { s.names = names } }

// WithTLS makes the server use TLS on TCP; nil: plain text.
func WithTLS(t *transport.TLS) Option { return func(s *Server) { s.tls = t } }

// route is one path of the API with one method: its handler and its description.
type route struct {
	method     string // empty: GET, which also answers HEAD
	local      bool   // only for clients of the unix socket
	unbounded  bool   // without the limit of answers: a probe, or a watch, which has its own limit
	path       string // as in a pattern of [http.ServeMux]
	id         string // of the operation, unique
	summary    string
	parameters []string     // of the query
	body       reflect.Type // of the request as JSON; nil: none
	answer     reflect.Type // nil: not JSON
	media      string       // when it is not JSON
	errors     []int
	handle     func(w http.ResponseWriter, r *http.Request) error // a *Problem is the answer
}

// NewServer returns a server. It fails when a required parameter is missing. With a nil log, nothing is logged.
func NewServer(p Params, log *slog.Logger, options ...Option) (*Server, error) {
	if p.View == nil || p.Gatherer == nil || p.LogLevel == nil || p.Settings == nil {
		return nil, errors.New("api: a parameter is missing")
	}
	s := &Server{
		Params: p, log: cmp.Or(log, slog.New(slog.DiscardHandler)), now: time.Now, heartbeat: watchHeartbeat, firstWait: firstStateWait,
		resources: allResources(), mux: http.NewServeMux(), listeners: new(transport.Listeners), limits: transport.DefaultLimits(), refused: newRefused(), discovered: newDiscovered(),
		buffers: transport.NewBufferPool(), configKey: clientfile.NewKey(), large: transport.NewLarge(),
	}
	for _, o := range options {
		o(s)
	}
	s.connections = transport.NewGate(s.limits.Connections, s.refused.by("connections"))
	s.watches = transport.NewGate(s.limits.Watches, s.refused.by("watches"))
	s.answers = transport.NewGate(s.limits.Answers, s.refused.by("answers"))
	s.states = transport.NewStates(s.limits.States, s.refused.by("states"))
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.boundary = cmp.Or(s.boundary, boundary.New(s.log).Part("http"))
	s.streams = transport.NewStreams(s.stopping, s.boundary)
	s.routes = s.allRoutes()
	for i := range s.routes {
		s.routes[i].method = cmp.Or(s.routes[i].method, http.MethodGet)
		s.serve(s.routes[i])
	}
	s.openAPI = sync.OnceValues(func() ([]byte, error) { return describe(s.Agent.Version, s.routes) })
	return s, nil
}

func (s *Server) serve(rt route) {
	s.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		err := s.admit(rt, r)
		if err == nil {
			err = s.answer(rt, w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// answer calls the handler of a route, within the limits.
func (s *Server) answer(rt route, w http.ResponseWriter, r *http.Request) error {
	from := transport.OriginOf(r.Context())
	if rt.unbounded || from.Local {
		return rt.handle(w, r)
	}
	leave, ok := s.answers.Enter(from.Peer)
	if !ok {
		return busy("too many answers are under way")
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	if begun, ok := w.(*response); ok {
		begun.until, _ = ctx.Deadline()
		defer s.View.Keep(func() {
			cancel()
			_ = begun.control.SetWriteDeadline(time.Now()) // as in extend
		})()
	}
	return rt.handle(w, r.WithContext(ctx))
}

// admit refuses requests that are only for clients of the unix socket: the mode of its file controls who may use it,
// and clients over TCP are not authenticated.
func (s *Server) admit(rt route, r *http.Request) error {
	if transport.OriginOf(r.Context()).Local || !rt.local {
		return nil
	}
	socket := s.Socket()
	if socket == "" {
		return problemf(http.StatusForbidden, "%s %s is answered on the unix socket only, and this agent has none: start it with --socket", r.Method, r.URL.Path)
	}
	return problemf(http.StatusForbidden, "%s %s is answered on the unix socket only: use %s", r.Method, r.URL.Path, socket)
}

// Handler returns the whole API as one handler. A panic becomes an error answer. When the answer has begun, the
// connection is closed instead, so that the client does not take the answer for complete.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		transport.OriginOf(r.Context()).Serving()
		w := &response{ResponseWriter: plain, control: http.NewResponseController(plain)}
		err := transport.Apart(s.boundary, s.handle, w, r)
		if err != nil && w.begun {
			panic(http.ErrAbortHandler)
		} else if err != nil {
			writeProblem(w, problemf(http.StatusInternalServerError, "%v", err))
		}
	})
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	from := transport.OriginOf(r.Context())
	if r.ContentLength != 0 && !from.Local { // a body over TCP is never used, and the server does not wait for it
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout)) // as in extend
	}
	if from.Over {
		w.Header().Set("Connection", "close")
	}
	if err := s.guard(r); err != nil {
		w.Header().Set("Connection", "close")
		s.fail(w, r, err)
		return
	}
	if refusal, pattern := s.mux.Handler(r); pattern == "" {
		s.refuse(w, r, refusal)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// response records whether the answer has begun, and sets a new deadline for each write.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
	until   time.Time // deadline of the whole answer; zero: none
}

func (w *response) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(b)
}

func (w *response) extend() {
	w.begun = true
	next := time.Now().Add(transport.WriteTimeout)
	if !w.until.IsZero() && w.until.Before(next) {
		next = w.until
	}
	// Only the writers of tests have no deadlines.
	_ = w.control.SetWriteDeadline(next)
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuse answers a request without a route: the mux would do that, but not with a problem document.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, refusal http.Handler) {
	status, header := transport.Unseen(refusal, r)
	if status != http.StatusMethodNotAllowed {
		writeProblem(w, notFound("there is no %s; GET / lists the paths", r.URL.Path))
		return
	}
	w.Header().Set("Allow", header.Get("Allow"))
	writeProblem(w, problemf(status, "%s is not allowed on %s, only %s", r.Method, r.URL.Path, header.Get("Allow")))
}

// fail answers with an error of a handler that has not written an answer.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		writeProblem(w, p)
		return
	}
	s.log.Error("Request failed", "path", r.URL.Path, "error", err)
	writeProblem(w, problemf(http.StatusInternalServerError, "%v", err))
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	var b strings.Builder
	b.WriteString("mesh-agent " + s.Agent.Version + "\n\n")
	for _, rt := range s.routes {
		if rt.method == http.MethodGet {
			b.WriteString(strings.TrimSuffix(rt.path, "{$}") + "\n")
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // an error: the client is gone
	return nil
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	doc, err := s.openAPI()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(doc) // an error: the client is gone
	return nil
}

// Serve answers requests on the listeners of Listen until ctx ends, then gives running requests a short time to
// finish, and closes everything. It returns nil when it stops because ctx ends, and otherwise the error. It is called
// once.
func (s *Server) Serve(ctx context.Context) error {
	defer s.Close()
	// Running requests end with the server, not with ctx: they have stopTimeout.
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       transport.MarkOrigin,
		ConnState:         transport.NoteState,
	}
	g, ctx := errgroup.WithContext(ctx)
	s.listeners.Serve(g, server)
	g.Go(func() error {
		<-ctx.Done()
		s.stop()
		stopCtx, cancel := context.WithTimeout(base, stopTimeout)
		defer cancel()
		if err := server.Shutdown(stopCtx); err != nil {
			abort()
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}
