package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// Loading writes transactions of the size that was fastest in measurements (about 700 addresses), and keeps several of
// them in flight, so that etcd is never idle.
const (
	maxTxnOps   = 10_000
	txnBytes    = 256 << 10
	txnOverhead = 32 // maximum number of bytes that etcd adds to each put
	inFlight    = 4
)

// Loaded has the results of loading.
type Loaded struct {
	// Keys is the number of written keys: state, configuration, canaries, heartbeat.
	Keys int
	Took time.Duration
}

// Load writes everything, in the order of the clustermesh-apiserver: the configuration and the heartbeat, all
// resources, and when these are acknowledged the canaries. It is called once.
func (r *Running) Load(ctx context.Context) (Loaded, error) {
	start := time.Now()
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	var l Loaded
	err := e.load(ctx, r, &l)
	l.Took = time.Since(start)
	if err != nil {
		return l, fmt.Errorf("load cluster %s: %w", r.c.Name, err)
	}
	return l, nil
}

// load loads one of the clusters; the heartbeat is written with the first one, and after the last one rights are
// enforced.
func (e *etcd) load(ctx context.Context, r *Running, l *Loaded) error {
	if e.server == nil {
		return errors.New("its server was killed")
	}
	kv := e.server.Local()
	if e.heartbeatLease == 0 {
		if err := e.writeHeartbeat(ctx, kv); err != nil {
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
	if slices.ContainsFunc(e.clusters, func(other *Running) bool { return !other.loaded }) {
		return nil
	}
	return e.enableAuth(ctx, e.server)
}

// fill writes all contents of the cluster into an etcd without its keys, and returns the number of keys.
func (r *Running) fill(ctx context.Context, kv *clientv3.Client) (int, error) {
	if len(r.fixed) == 0 {
		r.fixed = append(r.fixed, r.withSlot(r.c.Config()))
		for _, resource := range r.c.Canaries() {
			r.fixed = append(r.fixed, r.withSlot(contents.Op{Key: wire.SyncedKey(r.c.Name, resource, r.c.Mode == contents.Cached)}))
		}
	}
	for i := range r.fixed[1:] {
		r.fixed[1+i].Value = wire.EncodeTimestamp(time.Now())
	}
	if err := r.grant(ctx, kv); err != nil {
		return 0, err
	}
	first, last := append(r.overridden(), r.unbroken(r.fixed[:1])...), r.unbroken(r.fixed[1:])
	if err := r.commitOps(ctx, kv, first); err != nil {
		return 0, err
	}
	n, err := r.writeState(ctx, kv)
	if err != nil {
		return 0, err
	}
	return n + len(first) + len(last), r.commitOps(ctx, kv, last)
}

// withSlot assigns a lease to a key that is not in the model.
func (r *Running) withSlot(o contents.Op) contents.Op {
	o.Slot = r.model.Slots.Take()
	return o
}

// writeState writes the state in large transactions, some of them at a time.
func (r *Running) writeState(ctx context.Context, kv *clientv3.Client) (keys int, err error) {
	g, all := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for batch := range r.batches(r.state(), maxTxnOps) {
		if all.Err() != nil {
			break
		}
		keys += len(batch)
		g.Go(func() error { return commit(all, kv, batch) })
	}
	if err := g.Wait(); err != nil {
		return keys, err
	}
	return keys, ctx.Err()
}

// commitOps writes any number of operations in transactions of a good size, one after the other.
func (r *Running) commitOps(ctx context.Context, kv *clientv3.Client, ops []contents.Op) error {
	for batch := range r.batches(slices.Values(ops), churnOps) {
		if err := persist(ctx, func(ctx context.Context) error { return commit(ctx, kv, batch) }); err != nil {
			return err
		}
	}
	return nil
}

// batches divides operations into transactions of a good size, each with at most this number of
// operations. Their leases must have been granted.
func (r *Running) batches(ops iter.Seq[contents.Op], most int) iter.Seq[[]clientv3.Op] {
	return func(yield func([]clientv3.Op) bool) {
		var batch []clientv3.Op
		size := 0
		for o := range ops {
			n := len(o.Key) + len(o.Value) + txnOverhead
			if len(batch) == most || len(batch) > 0 && size+n > txnBytes {
				if !yield(batch) {
					return
				}
				batch, size = make([]clientv3.Op, 0, len(batch)), 0
			}
			batch = append(batch, r.etcdOp(o))
			size += n
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// etcdOp attaches a write to its lease.
func (r *Running) etcdOp(o contents.Op) clientv3.Op {
	if o.Deletes() {
		return clientv3.OpDelete(o.Key)
	}
	if o.Slot == contents.NoLease {
		return clientv3.OpPut(o.Key, string(o.Value))
	}
	return clientv3.OpPut(o.Key, string(o.Value), clientv3.WithLease(r.leases[o.Slot]))
}

// commit commits at least one operation at once.
func commit(ctx context.Context, kv *clientv3.Client, ops []clientv3.Op) error {
	if _, err := kv.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("commit %d operations, the first on %s: %w", len(ops), ops[0].KeyBytes(), err)
	}
	return nil
}
