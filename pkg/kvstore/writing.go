package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EngineWriter implements the methods of a [Writer] that write, with transactions of an
// [Engine]: conditions, leased keys, locks and observers. Engines embed it.
type EngineWriter struct {
	engine Engine
	leases *Leases             // of keys
	ours   bool                // leases end with the session
	locks  *Leases             // of locks; they always end with the session
	paths  *waiting.NamedLocks // of the paths of locks, within this process
	held   *lockTable
	o      WriterOptions

	// proved is when a transaction, which needs the quorum, was last answered, in
	// nanoseconds of Unix time; 0 for never.
	proved atomic.Int64
}

// These are the default durations for which keys and locks outlive their writer (spec wire.md §5).
const (
	DefaultLeaseTTL = 15 * time.Minute
	DefaultLockTTL  = 25 * time.Second
)

// WriterOptions are the options of an [EngineWriter]. A duration of 0 means the default.
type WriterOptions struct {
	// LeaseTTL is how long keys outlive a writer that is gone, LockTTL the same for locks.
	LeaseTTL, LockTTL time.Duration
	// LockWait bounds the wait for a lock (default: one minute), and Write bounds one request
	// about locks (10 s). A lock that is held for longer than StaleLock is reported (30 s).
	LockWait, Write, StaleLock time.Duration
	// NoQuorumCheck omits the linearizable read before a lock is taken. Without it the read
	// is made unless a transaction was answered shortly before.
	NoQuorumCheck bool
	// Leases are the leases of the keys, which pass from session to session; nil: the leases
	// end with the session.
	Leases *Leases
	// The gauges of leases of keys, of leases of locks, and of locks held; nil for none.
	LeaseGauge, LockLeaseGauge, LockGauge Gauge
	// Hint returns advice about an error; nil for no hints.
	Hint func(error) string
	// Log receives warnings about leases and locks; nil for none.
	Log *slog.Logger
}

// Gauge is a number that increases and decreases, such as a gauge of Prometheus.
type Gauge interface{ Add(float64) }

// NewWriter makes the writing side of a session. Leases and locks need [EngineWriter.Join].
func NewWriter(e Engine, o WriterOptions) *EngineWriter {
	for d, usual := range map[*time.Duration]time.Duration{
		&o.LeaseTTL: DefaultLeaseTTL, &o.LockTTL: DefaultLockTTL,
		&o.LockWait: time.Minute, &o.Write: 10 * time.Second, &o.StaleLock: 30 * time.Second,
	} {
		*d = cmp.Or(*d, usual)
	}
	w := &EngineWriter{
		engine: e, leases: cmp.Or(o.Leases, NewLeases()), ours: o.Leases == nil, locks: NewLeases(),
		paths: waiting.NewNamedLocks(), held: newLockTable(o.LockGauge), o: o,
	}
	w.locks.ended = w.held.leaseEnded
	return w
}

func (w *EngineWriter) failed(op, key string, err error) error {
	return withHint(w.o.Hint, op, key, err)
}

func withHint(hint func(error) string, op, key string, err error) error {
	ke := &KeyError{Op: op, Key: key, Err: err}
	if hint != nil {
		ke.Hint = hint(err)
	}
	return ke
}

// transact makes a transaction; an answer proves the quorum.
func (w *EngineWriter) transact(ctx context.Context, t Transaction) (TxnResult, Position, error) {
	res, at, err := w.engine.Transact(ctx, t)
	if err == nil {
		w.proved.Store(time.Now().UnixNano())
	}
	return res, at, err
}

// quorumProof is how long an answer counts as proof of the quorum.
const quorumProof = 5 * time.Second

// proveQuorum makes a linearizable read unless an answer has proved the quorum recently.
func (w *EngineWriter) proveQuorum(ctx context.Context, path string) error {
	if since := time.Since(time.Unix(0, w.proved.Load())); since >= 0 && since < quorumProof {
		return nil
	}
	_, _, err := w.transact(ctx, Transaction{Op: "lock", Key: path, Txn: Txn{Then: []TxnOp{readKey(wire.HeartbeatKey)}}})
	return err
}

// Join begins the session, once the server's cluster ID is known. The leases continue if the
// previous session had the same cluster ID.
func (w *EngineWriter) Join(clusterID uint64) {
	o := w.o
	w.leases.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.LeaseTTL, gauge: o.LeaseGauge, log: o.Log})
	w.locks.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.LockTTL, gauge: o.LockLeaseGauge, log: o.Log})
}

// Count sets the numbers of leases and locks in s.
func (w *EngineWriter) Count(s *Status) {
	s.Leases, s.LockLeases, s.Locks = w.leases.number(), w.locks.number(), w.held.number()
}

// Keep keeps the leases alive and watches the locks, until the context ends.
func (w *EngineWriter) Keep(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.leases.keep(ctx, w.engine) })
	g.Go(func() error { return w.locks.keep(ctx, w.engine) })
	g.Go(func() error { return w.watchLocks(ctx) })
	return g.Wait()
}

// Release ends the session: it revokes the leases of the locks, within the context.
// The leases of keys expire.
func (w *EngineWriter) Release(ctx context.Context) {
	w.held.clear()          // before other clients can take the locks
	_ = w.locks.Revoke(ctx) // a lease that cannot be revoked expires
	w.held.clear()          // locks that were taken meanwhile
	if w.ours {
		w.leases.abandon()
	}
}

// Put implements [Writer].
func (w *EngineWriter) Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error) {
	r := requested(opts)
	if key == "" {
		return Result{}, misused("put", key, errEmptyKey) // before a lease is requested
	}
	if r.leased {
		return w.putLeased(ctx, key, value, r)
	}
	res, err := w.put(ctx, key, value, 0, r)
	w.detach(key, res)
	return res, err
}

// put makes one try, and ties the key to the lease, 0 for none. With IfChanged it reads first: a
// read uses neither raft nor the disk of a server, but a transaction that might write uses both,
// even when it does not write.
func (w *EngineWriter) put(ctx context.Context, key string, value []byte, lease int64, r request) (Result, error) {
	if r.ifChanged {
		t, err := compileLook(key, value, lease, r)
		if err != nil {
			return Result{}, err
		}
		if same, err := w.write(ctx, t); err != nil || same.Met {
			return same, err
		}
	}
	t, err := compilePut(key, value, lease, r)
	if err != nil {
		return Result{}, err
	}
	return w.write(ctx, t)
}

// leaseAttempts is the number of tries of a leased write: after each, a lease that has just ended is replaced.
const leaseAttempts = 3

func (w *EngineWriter) putLeased(ctx context.Context, key string, value []byte, r request) (res Result, err error) {
	for range leaseAttempts {
		var lease int64
		if lease, err = w.attach(ctx, w.leases, "put", key); err != nil {
			return Result{}, err
		}
		res, err = w.put(ctx, key, value, lease, r)
		w.leases.with(func(b *leaseBook) { b.record(key, lease, outcomeOf(res.Met, err), res.At.Revision) })
		if !errors.Is(err, ErrLeaseNotFound) {
			return res, err
		}
		w.leases.end([]int64{lease}, leaseUnknown)
	}
	return Result{}, err
}

// attach calls Leases.attach and returns its error as that of the operation.
func (w *EngineWriter) attach(ctx context.Context, leases *Leases, op, key string) (int64, error) {
	id, err := leases.attach(ctx, key)
	if err == nil || ctx.Err() != nil {
		return id, err
	}
	if ke, is := errors.AsType[*KeyError](err); is {
		err = ke.Err // the new KeyError names the operation and its key
	}
	return 0, w.failed(op, key, fmt.Errorf("asking for a lease: %w", err))
}

// Delete implements [Writer].
func (w *EngineWriter) Delete(ctx context.Context, key string, opts ...Option) (Result, error) {
	t, err := compileDelete(key, requested(opts))
	if err != nil {
		return Result{}, err
	}
	res, err := w.write(ctx, t)
	w.detach(key, res)
	return res, err
}

// detach records that the key was deleted, or written without a lease, if the conditions held.
func (w *EngineWriter) detach(key string, res Result) {
	if res.Met {
		w.leases.with(func(b *leaseBook) { b.detach(key, res.At.Revision) })
	}
}

// DeletePrefix implements [Writer].
func (w *EngineWriter) DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error) {
	t, err := compileDeletePrefix(prefix, requested(opts))
	if err != nil {
		return Result{}, err
	}
	res, err := w.write(ctx, t)
	if res.Met {
		w.leases.with(func(b *leaseBook) { b.detachAll(prefix, res.At.Revision) })
	}
	return res, err
}

// Owns implements [Writer].
func (w *EngineWriter) Owns(lease int64) bool { return w.leases.owns(lease) }

// OnLeaseExpired implements [Writer].
func (w *EngineWriter) OnLeaseExpired(prefix string, f func(keys []string)) {
	w.leases.observe(prefix, f)
}

func (w *EngineWriter) write(ctx context.Context, t Transaction) (Result, error) {
	answer, at, err := w.transact(ctx, t)
	if err != nil {
		return Result{}, err
	}
	return result(answer, at), nil
}

// outcomeOf returns the outcome of a write. A put with IfChanged that had nothing to do has met its
// conditions: the key is tied.
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

// wasRefused reports whether the server received a write and did not execute it.
func wasRefused(err error) bool {
	return slices.ContainsFunc([]error{
		ErrLockLeaseExpired, ErrPermissionDenied, ErrUnauthenticated, ErrLeaseNotFound, ErrInvalidRequest, ErrRetryRequest,
	}, func(is error) bool { return errors.Is(err, is) })
}
