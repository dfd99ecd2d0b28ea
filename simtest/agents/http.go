package agents

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// DialHTTP connects with the HTTP API of the agent of the cluster. It fails while none runs.
func (c *Cluster) DialHTTP(context.Context, string, string) (net.Conn, error) { return c.http.dial() }

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
		l := c.http.listen()
		server := &http.Server{Handler: s.Handler()} //nolint:gosec // the clients are in this process
		return waiting.Together(ctx, func(ctx context.Context) error {
			err := server.Serve(l)
			return cmp.Or(ctx.Err(), err)
		}, func(ctx context.Context) error {
			<-ctx.Done()
			return errors.Join(ctx.Err(), server.Close(), c.http.close())
		})
	}, nil
}
