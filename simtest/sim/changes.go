package sim

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// The changes to the contents of a cluster. Contents shows the result.

// Put writes any key. In an etcd that several clusters share it refuses a key of another cluster.
func (r *Running) Put(ctx context.Context, key string, value []byte) error {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.mayChange(key); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return r.override(ctx, contents.Op{Key: key, Value: value})
}

// Delete deletes any existing key.
func (r *Running) Delete(ctx context.Context, key string) error {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.mayChange(key); err != nil {
		return err
	}
	resp, err := r.etcd.client.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("look for %s: %w", key, err)
	}
	if resp.Count == 0 {
		return refuse("cluster %s has no key %s", r.c.Name, key)
	}
	return r.override(ctx, contents.Op{Key: key})
}

func (r *Running) mayChange(key string) error {
	if key == "" {
		return misuse("the key is empty")
	}
	for _, other := range r.etcd.clusters {
		if other != r && other.owns(key) {
			return refuse("key %s belongs to cluster %s, which is in the same etcd", key, other.c.Name)
		}
	}
	return r.up()
}

// Kinds are the kinds of keys that Malform supports: the cluster configuration, and the resources.
func Kinds() []string {
	kinds := []string{"config"}
	for _, resource := range wire.Resources() {
		kinds = append(kinds, string(resource))
	}
	return kinds
}

// Malform writes a malformed value to a key of this kind (one of Kinds) that has its right value, and returns the key.
func (r *Running) Malform(ctx context.Context, kind string) (string, error) {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.up(); err != nil {
		return "", err
	}
	key, err := r.firstOf(kind)
	if err != nil {
		return "", err
	}
	return key, r.override(ctx, contents.Op{Key: key, Value: []byte(contents.Malformed)})
}

func (r *Running) firstOf(kind string) (string, error) {
	prefix := ""
	switch i := slices.Index(Kinds(), kind); i {
	case -1:
		return "", misuse("no kind of key is called %q: use one of %s", kind, strings.Join(Kinds(), ", "))
	case 0:
		prefix = wire.ClusterConfigKey(r.c.Name)
	default:
		prefix = wire.Resource(kind).Prefix(r.c.Name, r.c.Mode == contents.Cached)
	}
	for o := range r.all() {
		if _, changed := r.overrides[o.Key]; !changed && strings.HasPrefix(o.Key, prefix) {
			return o.Key, nil
		}
	}
	return "", refuse("cluster %s has no key %s… with its right value", r.c.Name, prefix)
}

// SetChurn changes the rate of changes, in keys per second; 0 for none.
func (r *Running) SetChurn(rate float64) error {
	if math.IsNaN(rate) || rate < 0 || rate > maxChurn {
		return misuse("churn of %g: must be in 0..%d keys per second", rate, maxChurn)
	}
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	r.rate = rate
	r.rateChanged.Notify()
	return nil
}

const maxChurn = 1_000_000

// holds reports whether the cluster publishes a pod with this address.
func (r *Running) holds(addr netip.Addr) bool {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	pair := wire.NewHostPair(addr)
	o := r.place(contents.Op{Key: pair.Key()})
	if v, ok := r.overrides[o.Key]; ok {
		return v.value != nil
	}
	return !r.empty && r.model.HasPod(addr)
}

// claim publishes a pod of this cluster with the address.
func (r *Running) claim(ctx context.Context, addr netip.Addr) (string, error) {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.up(); err != nil {
		return "", err
	}
	claim, possible := r.model.Claim(addr)
	if !possible {
		return "", refuse("cluster %s has no node or no identity for an address", r.c.Name)
	}
	o := r.place(claim)
	return o.Key, r.override(ctx, o)
}
