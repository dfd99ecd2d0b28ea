package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Servers are kvstores in memory by endpoint, such as "http://c1:2379". It is the engine of a mesh whose client files
// have these endpoints. It must not change while sessions are opened.
type Servers map[string]*Store

// Open begins a session with the server at one of the endpoints. Attempts, counted from 0, use the endpoints in turn.
func (s Servers) Open(ctx context.Context, cfg *clientfile.Config, attempt int) (kvstore.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	endpoint := cfg.Endpoints[uint(attempt)%uint(len(cfg.Endpoints))] //nolint:gosec // any bits will do
	server, ok := s[endpoint]
	if !ok {
		return nil, fmt.Errorf("connect to %s: there is no server in memory at this endpoint", endpoint)
	}
	return server.Connect(), nil
}

// Stretch returns the interval itself.
func (s Servers) Stretch(d time.Duration) time.Duration { return d }
