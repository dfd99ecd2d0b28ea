package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// etcd is a server with its clusters: one cluster of its own, or several that KVStoreMesh copied into it. Readers reach
// it through a gate, the simulator connects directly: its writes while the server is frozen are visible after the thaw.
type etcd struct {
	name     string // of its first cluster
	o        Options
	work     string  // the directory of the databases and of the server's certificate
	ca       *pki.CA // nil for plain text
	gate     *etcdserver.Gate
	clusters []*Running
	tls      *etcdserver.TLS // nil for plain text
	admin    pki.Pair        // of the simulator itself; empty without TLS
	reader   pki.Pair        // for the agent; empty without TLS

	heartbeatEvery time.Duration // seams for tests
	ttl            time.Duration

	changed waiting.Signal // wakes supervise

	mu             sync.Mutex         // guards what follows, and the contents of the clusters
	server         *etcdserver.Server // nil while killed
	config         etcdserver.Config  // of the latest server
	id             uint64             // its etcd cluster ID
	client         *clientv3.Client   // may write everything, also under authentication
	servers        int                // number of servers so far: each has a directory
	heartbeats     bool
	heartbeatLease clientv3.LeaseID // 0 for none
	thawAt         time.Time        // zero when only a call of Thaw thaws it
}

// openEtcd starts the server of these clusters, empty. The caller must close the returned etcd,
// also after an error.
func openEtcd(ctx context.Context, clusters []contents.Cluster, work string, ca *pki.CA, o Options) (*etcd, error) {
	e := &etcd{
		name: clusters[0].Name, o: o, work: work, ca: ca, gate: etcdserver.NewGate("127.0.0.1:0"), heartbeats: true,
		heartbeatEvery: heartbeatInterval, ttl: leaseTTL, changed: waiting.NewSignal(),
	}
	for _, c := range clusters {
		r, err := newRunning(e, c)
		if err != nil {
			return e, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		e.clusters = append(e.clusters, r)
	}
	if err := e.open(ctx); err != nil {
		return e, fmt.Errorf("cluster %s: %w", e.name, err)
	}
	return e, nil
}

func (e *etcd) open(ctx context.Context) error {
	if !e.o.Plain {
		if err := e.certificates(); err != nil {
			return err
		}
	}
	s, err := etcdserver.Start(e.fresh(""))
	if err != nil {
		return err
	}
	return e.adopt(ctx, s)
}

// fresh is the configuration of a server without data. An empty token gives it a new etcd cluster ID.
func (e *etcd) fresh(token string) etcdserver.Config {
	e.servers++
	dir := filepath.Join(e.work, "etcd-"+strconv.Itoa(e.servers))
	return etcdserver.Config{DataDir: dir, Token: token, TLS: e.tls, Tune: tune}
}

// tune prepares an etcd server for large transactions. Little of the raft log
// is kept in memory, because no other member needs to catch up.
func tune(c *embed.Config) {
	c.MaxTxnOps = maxTxnOps
	c.SnapshotCount = 500
	c.SnapshotCatchUpEntries = 50
	c.AutoCompactionMode = embed.CompactorModePeriodic
	c.AutoCompactionRetention = "1h"
}

// adopt switches to a running server, opens the gate to it, and ends the earlier one. After an error, the new server is
// ended and the state is unchanged.
func (e *etcd) adopt(ctx context.Context, s *etcdserver.Server) error {
	c, err := e.dialAs(ctx, s.Endpoint(), e.admin)
	if err == nil {
		err = e.gate.Open(s.Addr())
	}
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		s.Close()
		return err
	}
	e.end()
	e.server, e.client, e.id, e.config = s, c, s.ClusterID(), s.Config()
	e.config.Addr = "" // any free port is fine again: the gate's address stays
	e.thawAt = time.Time{}
	e.changed.Notify()
	return nil
}

// end kills the server, if it runs. The data stay.
func (e *etcd) end() {
	if e.client != nil {
		_ = e.client.Close() // it can only fail because the server, which is ending anyway, has closed it
	}
	if e.server != nil {
		e.server.Kill()
	}
	e.server, e.client = nil, nil
	e.changed.Notify()
}

// endpoint is the URL for readers, which never changes.
func (e *etcd) endpoint() string {
	if e.o.Plain {
		return "http://" + e.gate.Addr()
	}
	return "https://" + e.gate.Addr()
}

// run keeps loaded clusters alive until ctx ends, which is no error: it renews the leases, repeats
// the heartbeat, and makes changes at the rate of the options. It fails when etcd does by itself.
// While the server is killed it waits.
func (e *etcd) run(ctx context.Context) error {
	runs := []func(context.Context) error{e.keepLeases, e.keepHeartbeat, e.supervise}
	for _, r := range e.clusters {
		runs = append(runs, r.churn)
	}
	return waiting.Together(ctx, runs...)
}

// supervise fails when the server ends unexpectedly, and thaws it in time.
func (e *etcd) supervise(ctx context.Context) error {
	for {
		server, failed, thaw := e.watched()
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		case <-thaw:
			e.thawInTime()
		case err := <-failed:
			if now, _, _ := e.watched(); now == server {
				return fmt.Errorf("etcd server of cluster %s ended: %w", e.name, errors.Join(err, errServerEnded))
			}
		}
	}
}

var errServerEnded = errors.New("not by the simulator")

// watched returns what supervise waits for.
func (e *etcd) watched() (server *etcdserver.Server, failed <-chan error, thaw <-chan time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		failed = e.server.Err()
	}
	if !e.thawAt.IsZero() {
		thaw = time.After(time.Until(e.thawAt))
	}
	return e.server, failed, thaw
}

func (e *etcd) thawInTime() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.thawAt.IsZero() && !time.Now().Before(e.thawAt) {
		e.gate.Thaw()
		e.thawAt = time.Time{}
	}
}

// close ends the server.
func (e *etcd) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gate.Close()
	e.end()
	for _, r := range e.clusters {
		r.model.Close()
	}
}
