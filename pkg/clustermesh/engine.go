package clustermesh

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Engine opens the sessions with the kvstores of clusters. The options of package etcd are the engine for etcd, and
// the servers of package memory one for tests and simulations. Its methods may be called concurrently.
type Engine interface {
	// Open begins a session with an endpoint of the configuration. Attempts, counted from 0, use the endpoints in
	// turn. It returns once the server has answered.
	Open(ctx context.Context, cfg *clientfile.Config, attempt int) (kvstore.Session, error)
	// Stretch lengthens an interval, or a pause between attempts, with the number of nodes that do the same.
	Stretch(d time.Duration) time.Duration
}

// OwnKVStore is the kvstore of the own cluster.
type OwnKVStore struct {
	// Path is the path of its client file; empty if there is none.
	Path string
	// Load reads the configuration. It is called before each attempt to connect.
	Load func() (*clientfile.Config, error)
}
