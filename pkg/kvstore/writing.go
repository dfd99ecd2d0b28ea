package kvstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// writing is the writing side of a session, for whatever server: it implements
// [Writer]'s methods by transactions.
type writing struct {
	engine  Engine
	leases  *Leases // of keys
	ours    bool    // leases end with the session
	locks   *Leases // of locks; they always do
	paths   *pathLocks
	held    *lockTable
	options writeOptions
	// proved is when a transaction was last answered, which needs the quorum, in
	// nanoseconds of Unix time; 0 for never.
	proved atomic.Int64
}

// writeOptions are what a session's options say about writing.
type writeOptions struct {
	leaseTTL, lockTTL time.Duration
	timings           Timings
	checkQuorum       bool // before a lock is taken, unless it was proved just before
	metrics           *Metrics
	log               *slog.Logger
}

func newWriting(e Engine, shared *Leases, o writeOptions) *writing {
	w := &writing{
		engine: e, leases: shared, ours: shared == nil, locks: NewLeases(),
		paths: newPathLocks(), held: newLockTable(o.metrics), options: o,
	}
	w.locks.ended = w.held.leaseEnded
	if w.ours {
		w.leases = NewLeases()
	}
	return w
}

// transact makes a transaction, and notes that the quorum is there when it was answered.
func (w *writing) transact(ctx context.Context, t Transaction) (TxnResult, Position, error) {
	res, at, err := w.engine.Transact(ctx, t)
	if err == nil {
		w.proved.Store(time.Now().UnixNano())
	}
	return res, at, err
}

// quorumProof is for how long a quorum that was proved is not asked for again.
const quorumProof = 5 * time.Second

// proveQuorum asks for the quorum unless it has just been proved.
func (w *writing) proveQuorum(ctx context.Context, path string) error {
	if since := time.Since(time.Unix(0, w.proved.Load())); since >= 0 && since < quorumProof {
		return nil
	}
	_, _, err := w.transact(ctx, Transaction{Op: "lock", Key: path, Txn: Txn{Then: []TxnOp{readKey(wire.HeartbeatKey)}}})
	return err
}

// begin joins the leases, once the server's cluster ID is known.
func (w *writing) begin(clusterID uint64) {
	o := w.options
	w.leases.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.leaseTTL, gauge: o.metrics.leasesOf("session"), log: o.log})
	w.locks.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.lockTTL, gauge: o.metrics.leasesOf("lock"), log: o.log})
}

// run keeps the leases alive and looks after the locks, until the context ends.
func (w *writing) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.leases.keep(ctx, w.engine) })
	g.Go(func() error { return w.locks.keep(ctx, w.engine) })
	g.Go(func() error { return w.watchLocks(ctx) })
	return g.Wait()
}

// end revokes the leases of the locks, within the context. The others run out.
func (w *writing) end(ctx context.Context) {
	w.held.clear()          // before others can have the locks
	_ = w.locks.Revoke(ctx) // what cannot be revoked runs out
	w.held.clear()          // of those that were taken meanwhile
	if w.ours {
		w.leases.abandon()
	}
}

// Put implements [Writer].
func (w *writing) Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error) {
	r := requested(opts)
	if key == "" {
		return Result{}, &KeyError{"put", key, errEmptyKey} // before a lease is asked for
	}
	if r.leased {
		return w.putLeased(ctx, key, value, r)
	}
	res, met, err := w.put(ctx, key, value, 0, r)
	if met {
		w.leases.detach(key, res.At.Revision)
	}
	return res, err
}

// put makes one try, with the lease that the key is to be tied to, 0 for none. Under
// IfChanged it looks first: a read takes neither raft nor the disk of a server, as a
// transaction that might write does even when it does not.
func (w *writing) put(ctx context.Context, key string, value []byte, lease int64, r request) (res Result, met bool, err error) {
	if r.ifChanged {
		t, err := compileLook(key, value, lease, r)
		if err != nil {
			return Result{}, false, err
		}
		same, at, err := w.transact(ctx, t)
		switch {
		case err != nil:
			return Result{}, false, err
		case same.Succeeded:
			return Result{Met: true, At: at}, true, nil
		}
	}
	t, err := compilePut(key, value, lease, r)
	if err != nil {
		return Result{}, false, err
	}
	return w.write(ctx, t)
}

// leaseAttempts is how many leases are tried: one that has just ended is
// replaced.
const leaseAttempts = 3

func (w *writing) putLeased(ctx context.Context, key string, value []byte, r request) (res Result, err error) {
	for range leaseAttempts {
		var lease int64
		if lease, err = w.attach(ctx, w.leases, "put", key); err != nil {
			return Result{}, err
		}
		var met bool
		res, met, err = w.put(ctx, key, value, lease, r)
		w.leases.settle(key, lease, outcomeOf(met, err), res.At.Revision)
		if !errors.Is(err, ErrLeaseNotFound) {
			return res, err
		}
		w.leases.end([]int64{lease}, leaseUnknown)
	}
	return Result{}, err
}

// attach is Leases.attach with the error of an operation.
func (w *writing) attach(ctx context.Context, leases *Leases, op, key string) (int64, error) {
	id, err := leases.attach(ctx, key)
	if err == nil || ctx.Err() != nil {
		return id, err
	}
	var ke *KeyError
	if errors.As(err, &ke) {
		err = ke.Err // it is about the key
	}
	return 0, &KeyError{op, key, fmt.Errorf("asking for a lease: %w", err)}
}

// Delete implements [Writer].
func (w *writing) Delete(ctx context.Context, key string, opts ...Option) (Result, error) {
	t, err := compileDelete(key, requested(opts))
	if err != nil {
		return Result{}, err
	}
	res, met, err := w.write(ctx, t)
	if met {
		w.leases.detach(key, res.At.Revision)
	}
	return res, err
}

// DeletePrefix implements [Writer].
func (w *writing) DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error) {
	t, err := compileDeletePrefix(prefix, requested(opts))
	if err != nil {
		return Result{}, err
	}
	res, met, err := w.write(ctx, t)
	if met {
		w.leases.detachAll(prefix, res.At.Revision)
	}
	return res, err
}

// Owns implements [Writer].
func (w *writing) Owns(lease int64) bool { return w.leases.owns(lease) }

// OnLeaseExpired implements [Writer].
func (w *writing) OnLeaseExpired(prefix string, f func(keys []string)) { w.leases.observe(prefix, f) }

// write makes a write and tells whether its conditions were met.
func (w *writing) write(ctx context.Context, t Transaction) (res Result, met bool, err error) {
	answer, at, err := w.transact(ctx, t)
	if err != nil {
		return Result{}, false, err
	}
	return result(answer, at), answer.Succeeded, nil
}

// outcomeOf a write whose conditions were met, or not, or that has failed. A put
// under IfChanged that had nothing to do has met its conditions: the key is tied.
func outcomeOf(met bool, err error) outcome {
	switch {
	case err == nil && met:
		return tied
	case err == nil || wasRefused(err):
		return untied
	default:
		return unknown
	}
}

// wasRefused tells that a server has seen a write and not made it.
func wasRefused(err error) bool {
	return slices.ContainsFunc([]error{
		ErrLockLeaseExpired, ErrPermissionDenied, ErrUnauthenticated, ErrLeaseNotFound, ErrInvalidRequest, ErrRetryRequest,
	}, func(is error) bool { return errors.Is(err, is) })
}
