package agents

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// DialXDS connects with the xDS server of the agent of the cluster. It fails while none runs.
func (c *Cluster) DialXDS(context.Context, string) (net.Conn, error) { return c.xds.dial() }

// serveXDS returns a function that serves the services of a view with xDS until ctx ends.
func (c *Cluster) serveXDS(v *view.View, log *slog.Logger) (func(ctx context.Context) error, error) {
	s, err := xdsserver.New(xdsserver.Params{View: v, Log: log})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		s.Accept(c.xds.listen())
		err := s.Run(ctx)
		return errors.Join(err, c.xds.close())
	}, nil
}
