package agents

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// httpServer serves the HTTP API of the agents of a cluster, one after another, over pipes instead of sockets.
type httpServer struct {
	mu       sync.Mutex
	listener *pipes // of the running agent; nil: none runs
}

// DialHTTP connects with the HTTP API of the agent of the cluster. It fails while none runs.
func (c *Cluster) DialHTTP(context.Context, string, string) (net.Conn, error) {
	c.http.mu.Lock()
	defer c.http.mu.Unlock()
	if c.http.listener == nil {
		return nil, errors.New("connection refused")
	}
	return c.http.listener.dial()
}

// serveHTTP returns a function that serves the HTTP API with a view until ctx ends.
func (c *Cluster) serveHTTP(v *view.View) (func(ctx context.Context) error, error) {
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		return nil, err
	}
	s, err := httpapi.NewServer(httpapi.Params{View: v, Gatherer: prometheus.NewRegistry(), LogLevel: level, Settings: api.Settings{}}, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		l := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{}), open: make(map[net.Conn]struct{})}
		set := func(l *pipes) {
			c.http.mu.Lock()
			defer c.http.mu.Unlock()
			c.http.listener = l
		}
		set(l)
		server := &http.Server{Handler: s.Handler()} //nolint:gosec // the clients are in this process
		return waiting.Together(ctx, func(ctx context.Context) error {
			err := server.Serve(l)
			return cmp.Or(ctx.Err(), err)
		}, func(ctx context.Context) error {
			<-ctx.Done()
			set(nil)
			return errors.Join(ctx.Err(), server.Close(), l.Close())
		})
	}, nil
}

// pipes is a listener whose connections are pipes. They end with it, also those that a handler has taken over.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (p *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[conn] = struct{}{}
		return &end{conn, p}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.Close() // a pipe does not fail
	}
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// end is the end of the server.
type end struct {
	net.Conn
	of *pipes
}

func (e *end) Close() error {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	delete(e.of.open, e.Conn)
	return e.Conn.Close()
}
