package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// State is the present state of a cluster and its server.
type State struct {
	Cluster string `json:"cluster"`
	ID      uint32 `json:"id"`
	// Mode is "remote", "cached" or "local".
	Mode string `json:"mode"`
	// CachedIn names the cluster whose server the cached ones share.
	CachedIn string `json:"cachedIn,omitempty"`
	Endpoint string `json:"endpoint"`
	// State is "running", "frozen", "killed", or "empty" when the server runs but lost the cluster.
	State string `json:"state"`
	// ThawAt is when a frozen server thaws by itself.
	ThawAt *time.Time `json:"thawAt,omitempty"`
	// Keys is the number of the cluster's keys in etcd; nil while it is killed.
	Keys *int64 `json:"keys"`
	// EtcdClusterID is in hexadecimal.
	EtcdClusterID string `json:"etcdClusterID"`
	// ClientFile is the path of the client file; empty when it was removed.
	ClientFile string  `json:"clientFile"`
	Heartbeat  bool    `json:"heartbeat"`
	Churn      float64 `json:"churn"` // keys per second
	// Changed is the number of keys that differ from the right contents.
	Changed int `json:"changed"`
}

// State returns the present state of the cluster and its server. The Mesh sets the client file.
func (r *Running) State(ctx context.Context) (State, error) {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	s := State{
		Cluster: r.c.Name, ID: r.c.ID, Mode: r.c.Mode.String(), Endpoint: e.endpoint(), State: "running",
		EtcdClusterID: strconv.FormatUint(e.id, 16), Heartbeat: e.heartbeats, Churn: r.rate, Changed: len(r.overrides),
	}
	if r.c.Mode == contents.Cached {
		s.CachedIn = e.name
	}
	switch {
	case e.server == nil:
		s.State = "killed"
		return s, nil
	case e.gate.Frozen():
		s.State = "frozen"
		if !e.thawAt.IsZero() {
			s.ThawAt = new(e.thawAt)
		}
	case r.empty:
		s.State = "empty"
	}
	n, err := r.countKeys(ctx)
	if err != nil {
		return s, fmt.Errorf("count the keys of cluster %s: %w", r.c.Name, err)
	}
	s.Keys = &n
	return s, nil
}

// countKeys counts the cluster's keys in etcd.
func (r *Running) countKeys(ctx context.Context) (int64, error) {
	ops := []clientv3.Op{clientv3.OpGet("\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())}
	if r.c.Mode == contents.Cached {
		ops = []clientv3.Op{clientv3.OpGet(r.fixed[0].Key, clientv3.WithCountOnly())}
		for _, p := range r.prefixes() {
			ops = append(ops, clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithCountOnly()))
		}
	}
	resp, err := r.etcd.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, part := range resp.Responses {
		n += part.GetResponseRange().Count
	}
	return n, nil
}
