package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/pki"
)

// Intervals of the clustermesh-apiserver (spec wire.md §1.10, §5).
const (
	heartbeatInterval = time.Minute
	leaseTTL          = 15 * time.Minute
)

// commitTimeout bounds one transaction, also while the simulator ends.
const commitTimeout = 10 * time.Second

// Options say how a cluster's server is run.
type Options struct {
	// WorkDir is where the database and the server's certificate go, an
	// existing directory. Empty: a temporary one, which Close removes.
	WorkDir string
	// Plain serves without TLS, and then without authentication.
	Plain bool
	// NoAuth lets every client certificate read and write everything. Without
	// it, clients get exactly the rights of a remote cluster (spec wire.md §0).
	NoAuth bool
	// CA signs the certificates; nil for a new one.
	CA *pki.CA
	// Churn is how many keys per second Run writes or deletes; 0 for none.
	Churn float64
}

// Running is a simulated cluster whose server runs.
type Running struct {
	c       Cluster
	o       Options
	tempDir string // removed at Close, when set
	server  *etcdserver.Server
	client  *clientv3.Client // may write everything, also under authentication
	reader  pki.Pair         // what a remote cluster gets; empty without TLS

	heartbeatEvery time.Duration // seams for tests
	ttl            time.Duration

	mu      sync.Mutex
	model   *model             // guarded by mu, like everything below
	leases  []clientv3.LeaseID // by slot of the model
	fixed   []op               // configuration, heartbeat and canaries as last written
	changes uint64             // keys written or deleted by churn
}

// Open makes the contents of c in memory and starts its server, empty. The
// error says what is wrong with the description or with the start.
func Open(ctx context.Context, c Cluster, o Options) (*Running, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	m, err := newModel(c)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	r := &Running{c: c, o: o, model: m, heartbeatEvery: heartbeatInterval, ttl: leaseTTL}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s: %w", c.Name, err), r.Close())
	}
	return r, nil
}

func (r *Running) open(ctx context.Context) error {
	if r.o.WorkDir == "" {
		dir, err := os.MkdirTemp("", "mesh-sim-")
		if err != nil {
			return fmt.Errorf("make a working directory: %w", err)
		}
		r.tempDir, r.o.WorkDir = dir, dir
	}
	cfg := etcdserver.Config{DataDir: filepath.Join(r.o.WorkDir, "etcd"), Tune: tune}
	var admin pki.Pair
	if !r.o.Plain {
		var err error
		if cfg.TLS, admin, err = r.certificates(); err != nil {
			return err
		}
	}
	var err error
	if r.server, err = etcdserver.Start(cfg); err != nil {
		return err
	}
	r.client, err = r.dial(ctx, admin)
	return err
}

// tune prepares an etcd server for large transactions. Little of the raft log
// is kept in memory, as nobody needs to catch up.
func tune(c *embed.Config) {
	c.MaxTxnOps = maxTxnOps
	c.SnapshotCount = 500
	c.SnapshotCatchUpEntries = 50
	c.AutoCompactionMode = embed.CompactorModePeriodic
	c.AutoCompactionRetention = "1h"
}

// Cluster returns the description.
func (r *Running) Cluster() Cluster { return r.c }

// Endpoint returns the URL of the server.
func (r *Running) Endpoint() string { return r.server.Endpoint() }

// Server returns the etcd server, to be stopped, cut off or compacted.
func (r *Running) Server() *etcdserver.Server { return r.server }

// Client returns a client that may write everything. It ends with Close.
func (r *Running) Client() *clientv3.Client { return r.client }

// Contents encodes what the cluster holds: the value of every key of its state
// and of its configuration. After Load it equals etcd's contents, except for
// the canaries and the heartbeat, whose values are times. It is consistent:
// a change is in it entirely or not at all.
func (r *Running) Contents() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]string, r.c.Keys()+1)
	config := r.configOp()
	out[config.key] = string(config.value)
	_ = r.model.each(func(o op) error {
		out[o.key] = string(o.value)
		return nil
	})
	return out
}

// Changes is how many keys churn has written or deleted so far.
func (r *Running) Changes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// Sample names one object of each kind, for showing how to look it up. Fields
// are zero when the cluster has no such object.
type Sample struct {
	Pod      netip.Addr
	PodName  string // namespace/name
	Node     netip.Addr
	NodeName string
	Service  string // namespace/name of a service that every cluster has
}

// Sample picks objects that churn leaves alone.
func (r *Running) Sample() Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s Sample
	if len(r.model.nodes) > 0 {
		s.Node, s.NodeName = r.model.plan.nodeIP(0), r.model.nodeName(0)
	}
	if len(r.model.services) > 0 { // the first one is common to all
		s.Service = workloadNamespace(0) + "/" + serviceName(r.c, 0, 0)
	}
	if len(r.model.pods) > 0 {
		s.Pod = r.model.podIP(0)
		s.PodName = workloadNamespace(int(r.model.pods[0].workload)) + "/" + r.model.podName(0)
	}
	return s
}

// Run keeps a loaded cluster alive until ctx ends, which is no error: it renews
// the leases, repeats the heartbeat, and makes changes at the rate of the
// options. It fails when etcd does.
func (r *Running) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.keepLeases(ctx) })
	g.Go(func() error { return r.beat(ctx) })
	if r.o.Churn > 0 {
		g.Go(func() error { return r.churn(ctx) })
	}
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.server.Err():
			return fmt.Errorf("etcd server of cluster %s: %w", r.c.Name, err)
		}
	})
	return g.Wait()
}

// Close stops the server and removes the temporary directory, if there is one.
func (r *Running) Close() error {
	r.model.slices.Close()
	if r.client != nil {
		_ = r.client.Close() // its only error is that it was closed by a server that is going anyway
	}
	if r.server != nil {
		r.server.Close()
	}
	if r.tempDir != "" {
		if err := os.RemoveAll(r.tempDir); err != nil {
			return fmt.Errorf("remove the working directory: %w", err)
		}
	}
	return nil
}
