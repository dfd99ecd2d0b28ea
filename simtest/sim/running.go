package sim

import (
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// Intervals of the clustermesh-apiserver (spec wire.md §1.10, §5).
const (
	heartbeatInterval = time.Minute
	leaseTTL          = 15 * time.Minute
)

// commitTimeout bounds one attempt of a transaction, also while the simulator ends.
const commitTimeout = 10 * time.Second

// Running is a simulated cluster whose server runs, unless it was killed.
type Running struct {
	etcd  *etcd       // its mu guards everything below
	moves [][2]string // key prefixes and their replacements

	rateChanged waiting.Signal // wakes churn

	c      contents.Cluster
	model  *contents.Model
	fixed  []contents.Op // the configuration, then the canaries, as last written
	loaded bool
	rate   float64 // of changes, in keys per second
	written
}

// written is a server's state of a cluster.
type written struct {
	leases    []clientv3.LeaseID  // by slot of the model
	empty     bool                // the server lost everything, and no keys were written since
	overrides map[string]override // the keys that differ from the model
}

func newRunning(e *etcd, c contents.Cluster) (*Running, error) {
	m, err := contents.New(c)
	if err != nil {
		return nil, err
	}
	r := &Running{
		etcd: e, c: c, model: m, rate: e.o.Churn,
		written: written{overrides: map[string]override{}}, rateChanged: waiting.NewSignal(),
	}
	if c.Mode == contents.Cached {
		for _, resource := range wire.Resources() {
			r.moves = append(r.moves, [2]string{resource.Prefix(c.Name, false), resource.Prefix(c.Name, true)})
		}
	}
	return r, nil
}

// Cluster returns the description, with the present ID.
func (r *Running) Cluster() contents.Cluster {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	return r.c
}

// Endpoint returns the URL for readers. It stays the same when the server is killed or replaced.
func (r *Running) Endpoint() string { return r.etcd.endpoint() }

// Client returns a client that may write everything and is not affected by Freeze. It ends with the server: call Client
// again after each start or replacement. It is nil while the server is killed.
func (r *Running) Client() *clientv3.Client {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	return r.etcd.client
}

// Contents encodes the contents of the cluster: the value of every key of its state and of its configuration, including
// keys that were broken since. After Load it equals etcd's contents, except for the canaries and the heartbeat, whose
// values are times. It is consistent: it has a change completely or not at all.
func (r *Running) Contents() map[string]string {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	out := make(map[string]string, r.c.Keys()+1)
	for o := range r.all() {
		if o.Key != wire.HeartbeatKey && !strings.HasPrefix(o.Key, wire.SyncedPrefix+"/") {
			out[o.Key] = string(o.Value)
		}
	}
	return out
}

// Sample picks objects that churn does not change.
func (r *Running) Sample() contents.Sample {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	return r.model.Sample()
}
