package transport

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Probes answers health checks over a separate TCP address, in plain text: /healthz and /readyz. It is for clients
// without a certificate where the API requires one, such as a kubelet. The answers are only a status, without data of
// clusters.
type Probes struct {
	// IsReady reports whether the agent is ready.
	IsReady func() bool
	Log     *slog.Logger

	listeners *Listeners
}

// Limits of a health check.
const (
	probeRequest = 5 * time.Second
	probeHeader  = 4 << 10
)

// probeLimit is the limit of connections at the same time. Above the limit, a new connection replaces
// the one that waits longest.
func probeLimit() Limit { return Limit{All: 64, Peer: 16} }

// Listen opens the address. The error is a [*ListenError].
func (p *Probes) Listen(address string) error {
	l, err := Listen(Options{Address: address, Connections: NewGate(probeLimit(), Refusals{}), Flag: "--probe-listen", Public: true, Log: cmp.Or(p.Log, slog.New(slog.DiscardHandler))})
	if err == nil {
		p.listeners = l
	}
	return err
}

// Address returns the address that it listens on.
func (p *Probes) Address() string { return p.listeners.Address }

// Serve answers until ctx ends, and closes what Listen opened.
func (p *Probes) Serve(ctx context.Context) error {
	defer p.listeners.Close()
	server := &http.Server{
		Handler: http.HandlerFunc(p.answer), ReadTimeout: probeRequest, WriteTimeout: probeRequest, IdleTimeout: time.Minute, MaxHeaderBytes: probeHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), ConnContext: MarkOrigin, ConnState: NoteState,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	g, ctx := errgroup.WithContext(ctx)
	p.listeners.Serve(g, server)
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return g.Wait()
}

func (p *Probes) answer(w http.ResponseWriter, r *http.Request) {
	OriginOf(r.Context()).Serving()
	status, text := http.StatusOK, "ok\n"
	switch {
	case r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
		status, text = http.StatusNotFound, "only /healthz and /readyz are here: the API is at --listen\n"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		status, text = http.StatusMethodNotAllowed, "only GET is answered\n"
	case r.URL.Path == "/readyz" && !p.IsReady():
		status, text = http.StatusServiceUnavailable, "not ready: 'mesh-agent status' says why\n"
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // an error: the client is gone
}
