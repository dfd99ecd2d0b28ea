package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Loading writes transactions of a size that was measured to be best (about 700
// addresses), and keeps some of them under way, so that etcd is never idle.
const (
	maxTxnOps   = 10_000
	txnBytes    = 256 << 10
	txnOverhead = 32 // bytes that etcd adds to each put, at the most
	inFlight    = 4
)

// Loaded says how loading went.
type Loaded struct {
	Cluster string
	// Keys is how many keys were written: state, configuration, canaries,
	// heartbeat.
	Keys   int
	Leases int
	Took   time.Duration
}

// Rate is keys per second.
func (l Loaded) Rate() float64 { return float64(l.Keys) / max(l.Took.Seconds(), 1e-9) }

// Load writes everything, in the order of the clustermesh-apiserver: the
// configuration and the heartbeat, all resources, and when these are
// acknowledged the canaries. It is called once.
func (r *Running) Load(ctx context.Context) (Loaded, error) {
	start := time.Now()
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Loaded{Cluster: r.c.Name}
	err := e.load(ctx, r, &l)
	l.Took, l.Leases = time.Since(start), len(r.leases)
	if err != nil {
		return l, fmt.Errorf("load cluster %s: %w", r.c.Name, err)
	}
	return l, nil
}

// load loads one of the clusters; the first one with the heartbeat, and after
// the last one rights are enforced.
func (e *etcd) load(ctx context.Context, r *Running, l *Loaded) error {
	if e.server == nil {
		return errors.New("its server was killed")
	}
	kv := e.server.Local()
	if e.beatLease == 0 {
		if err := e.writeHeartbeat(ctx, kv, time.Now()); err != nil {
			return err
		}
		l.Keys++
	}
	n, err := r.fill(ctx, kv)
	if err != nil {
		return err
	}
	l.Keys += n
	r.loaded = true
	for _, other := range e.clusters {
		if !other.loaded {
			return nil
		}
	}
	return e.enableAuth(ctx, e.server)
}

// fill writes everything that the cluster has into an etcd without its keys, and
// returns how many keys that were.
func (r *Running) fill(ctx context.Context, kv *clientv3.Client) (int, error) {
	if len(r.fixed) == 0 {
		r.fixed = append(r.fixed, r.withSlot(r.configOp()))
		for _, resource := range r.canaries() {
			r.fixed = append(r.fixed, r.withSlot(op{key: wire.SyncedKey(r.c.Name, resource, r.c.Mode == Cached)}))
		}
	}
	for i := range r.fixed[1:] {
		r.fixed[1+i].value = wire.EncodeTimestamp(time.Now())
	}
	if err := r.grant(ctx, kv); err != nil {
		return 0, err
	}
	first, last := r.overridden(), []op(nil)
	if !r.empty {
		first = append(first, r.unbroken(r.fixed[:1])...)
		last = r.unbroken(r.fixed[1:])
	}
	if err := r.commitOps(ctx, kv, first); err != nil {
		return 0, err
	}
	n, err := r.writeState(ctx, kv)
	if err != nil {
		return 0, err
	}
	return n + len(first) + len(last), r.commitOps(ctx, kv, last)
}

// withSlot gives a key that is not of the model its place on a lease.
func (r *Running) withSlot(o op) op {
	o.slot = r.model.slots.take()
	return o
}

// configOp is the cluster configuration as its writer of 1.20 writes it.
func (r *Running) configOp() op {
	cfg := wire.ClusterConfig{ID: r.c.ID, Capabilities: r.capabilities()}
	return op{key: wire.ClusterConfigKey(r.c.Name), value: cfg.Encode()}
}

func (r *Running) capabilities() wire.Capabilities {
	exports := r.c.ServiceExports
	caps := wire.Capabilities{
		SyncedCanaries:        r.c.Mode != Local,
		Cached:                r.c.Mode == Cached,
		MaxConnectedClusters:  r.c.MaxConnectedClusters,
		ServiceExportsEnabled: &exports,
	}
	switch {
	case r.c.SlicesOnly:
		caps.EndpointSlicesExportMode = wire.EndpointSlicesOnly
	case r.c.EndpointSlices:
		caps.EndpointSlicesExportMode = wire.EndpointSlicesBoth
	}
	return caps
}

// canaries are the resources that are announced as synced, optional ones also when they are disabled.
func (r *Running) canaries() []wire.Resource {
	if r.c.Mode == Local {
		return nil
	}
	var all []wire.Resource
	for _, resource := range wire.Resources() {
		if resource.Describe().Optional || r.capabilities().Exports(resource) {
			all = append(all, resource)
		}
	}
	return all
}

// writeState writes the state in large transactions: one goroutine encodes,
// some commit.
func (r *Running) writeState(ctx context.Context, kv *clientv3.Client) (int, error) {
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan []clientv3.Op, 1)
	keys := 0
	g.Go(func() error {
		defer close(batches)
		var err error
		keys, err = r.encodeState(ctx, batches)
		return err
	})
	for range inFlight {
		g.Go(func() error {
			for ops := range batches {
				if err := commit(ctx, kv, ops); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return keys, g.Wait()
}

func (r *Running) encodeState(ctx context.Context, batches chan<- []clientv3.Op) (keys int, err error) {
	var batch []clientv3.Op
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		batch, size = make([]clientv3.Op, 0, len(batch)), 0
		return nil
	}
	err = r.eachOfState(func(o op) error {
		n := len(o.key) + len(o.value) + txnOverhead
		if len(batch) == maxTxnOps || size+n > txnBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, r.etcdOp(o))
		size += n
		keys++
		return nil
	})
	if err != nil {
		return keys, err
	}
	return keys, flush()
}

// etcdOp attaches a write to its lease, which must have been granted.
func (r *Running) etcdOp(o op) clientv3.Op {
	if o.deletes() {
		return clientv3.OpDelete(o.key)
	}
	if o.slot == noLease {
		return clientv3.OpPut(o.key, string(o.value))
	}
	return clientv3.OpPut(o.key, string(o.value), clientv3.WithLease(r.leases[o.slot]))
}

// write commits some operations at once.
func (r *Running) write(ctx context.Context, kv *clientv3.Client, ops []op) error {
	out := make([]clientv3.Op, len(ops))
	for i, o := range ops {
		out[i] = r.etcdOp(o)
	}
	return commit(ctx, kv, out)
}

func commit(ctx context.Context, kv *clientv3.Client, ops []clientv3.Op) error {
	if len(ops) == 0 {
		return nil
	}
	for {
		_, err := kv.Txn(ctx).Then(ops...).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrTimeout): // of a server that is too busy; again does no harm
		case err != nil:
			return fmt.Errorf("commit %d operations, the first on %s: %w", len(ops), ops[0].KeyBytes(), err)
		default:
			return nil
		}
	}
}
