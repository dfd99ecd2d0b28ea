package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// What can be done to the contents of a cluster. Contents shows the result.

// Put writes any key. It is refused in an etcd that several clusters share when
// the key is another one's.
func (r *Running) Put(ctx context.Context, key string, value []byte) error {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.mayChange(key); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return r.override(ctx, op{key: key, value: value})
}

// Delete deletes any key that there is.
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
	return r.override(ctx, op{key: key})
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

// malformed is no value of any kind: no JSON, no compressed slice, and as the
// labels of an identity without a cluster.
const malformed = "malformed by mesh-sim"

// configKind stands for the cluster configuration among the kinds of keys.
const configKind = "config"

// Kinds are the kinds of keys that Malform knows.
func Kinds() []string {
	kinds := []string{configKind}
	for _, resource := range wire.Resources() {
		kinds = append(kinds, string(resource))
	}
	return kinds
}

// Malform writes a malformed value over a key of this kind (one of Kinds) that
// has its right value, and returns the key.
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
	return key, r.override(ctx, op{key: key, value: []byte(malformed)})
}

// errFound ends a walk over all keys.
var errFound = errors.New("found")

func (r *Running) firstOf(kind string) (string, error) {
	prefix := wire.ClusterConfigKey(r.c.Name)
	for _, resource := range wire.Resources() {
		if string(resource) == kind {
			prefix = resource.Prefix(r.c.Name, r.c.Mode == Cached)
			kind = ""
		}
	}
	if kind != "" && kind != configKind {
		return "", misuse("no kind of key is called %q: use one of %s", kind, strings.Join(Kinds(), ", "))
	}
	found := ""
	err := r.each(func(o op) error {
		if _, changed := r.overrides[o.key]; !changed && strings.HasPrefix(o.key, prefix) {
			found = o.key
			return errFound
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		return "", refuse("cluster %s has no key %s… with its right value", r.c.Name, prefix)
	}
	return found, nil
}

// SetChurn changes the rate of changes, in keys per second; 0 for none.
func (r *Running) SetChurn(rate float64) error {
	if math.IsNaN(rate) || rate < 0 || rate > maxChurn {
		return misuse("churn of %g: must be in 0..%d keys per second", rate, maxChurn)
	}
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	r.rate = rate
	select {
	case r.rateChanged <- struct{}{}:
	default:
	}
	return nil
}

const maxChurn = 1_000_000

// holds tells whether the cluster says that it has a pod with this address.
func (r *Running) holds(addr netip.Addr) bool {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	pair := wire.NewHostPair(addr)
	o := r.place(op{key: pair.Key()})
	if v, ok := r.overrides[o.key]; ok {
		return v.value != nil
	}
	return !r.empty && r.model.hasPod(addr)
}

// claim says that a pod of this cluster has the address.
func (r *Running) claim(ctx context.Context, addr netip.Addr) (string, error) {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.up(); err != nil {
		return "", err
	}
	if len(r.model.nodes) == 0 || len(r.model.workloads) == 0 {
		return "", refuse("cluster %s has no node or no identity for an address", r.c.Name)
	}
	pair := wire.NewHostPair(addr)
	pair.HostIP = r.model.plan.nodeIP(0).AsSlice()
	pair.Identity = r.model.workloads[0].identity
	pair.Namespace, pair.Pod = workloadNamespace(0), "claimed-by-"+r.c.Name
	o := r.place(op{key: pair.Key(), value: pair.Encode()})
	return o.key, r.override(ctx, o)
}
