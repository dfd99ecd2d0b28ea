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

// EngineWriter implements the methods of a [Writer] that write, by transactions of an
// [Engine]: conditions, leased keys, locks and observers. Engines embed it.
type EngineWriter struct {
	engine Engine
	leases *Leases             // of keys
	ours   bool                // leases end with the session
	locks  *Leases             // of locks; they always do
	paths  *waiting.NamedLocks // of the paths of locks, within this process
	held   *lockTable
	o      WriterOptions

	// proved is when a transaction was last answered, which needs the quorum, in
	// nanoseconds of Unix time; 0 for never.
	proved atomic.Int64
}

// How long keys and locks outlive who is gone (spec wire.md §5).
const (
	DefaultLeaseTTL = 15 * time.Minute
	DefaultLockTTL  = 25 * time.Second
)

// WriterOptions are those of an [EngineWriter]. A duration of 0 is the default.
type WriterOptions struct {
	// LeaseTTL is how long keys outlive a writer that is gone, LockTTL the same for locks.
	LeaseTTL, LockTTL time.Duration
	// LockWait bounds the wait for a lock (default: one minute), Write one request about
	// locks (10 s); a lock that is held for longer than StaleLock is reported (30 s).
	LockWait, Write, StaleLock time.Duration
	// NoQuorumCheck leaves out the linearizable read before a lock is taken, which is
	// done unless a transaction was answered just before.
	NoQuorumCheck bool
	// Leases are those of the keys, handed on from session to session; nil: they end
	// with the session.
	Leases *Leases
	// The gauges of leases of keys, of leases of locks, and of locks held; nil for none.
	LeaseGauge, LockLeaseGauge, LockGauge Gauge
	// Hint says what to do about an error; nil for no hints.
	Hint func(error) string
	// Log receives warnings about leases and locks; nil for none.
	Log *slog.Logger
}

// Gauge is a number that goes up and down, as Prometheus has it.
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

// quorumProof is for how long an answer proves the quorum.
const quorumProof = 5 * time.Second

// proveQuorum makes a linearizable read unless the quorum has just been proved.
func (w *EngineWriter) proveQuorum(ctx context.Context, path string) error {
	if since := time.Since(time.Unix(0, w.proved.Load())); since >= 0 && since < quorumProof {
		return nil
	}
	_, _, err := w.transact(ctx, Transaction{Op: "lock", Key: path, Txn: Txn{Then: []TxnOp{readKey(wire.HeartbeatKey)}}})
	return err
}

// Join begins the session, once the server's cluster ID is known: leases go on where
// it is that of the session before.
func (w *EngineWriter) Join(clusterID uint64) {
	o := w.o
	w.leases.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.LeaseTTL, gauge: o.LeaseGauge, log: o.Log})
	w.locks.join(joined{lessor: w.engine, clusterID: clusterID, ttl: o.LockTTL, gauge: o.LockLeaseGauge, log: o.Log})
}

// Count fills in how many leases and locks there are.
func (w *EngineWriter) Count(s *Status) {
	s.Leases, s.LockLeases, s.Locks = w.leases.number(), w.locks.number(), w.held.number()
}

// Keep keeps the leases alive and looks after the locks, until the context ends.
func (w *EngineWriter) Keep(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.leases.keep(ctx, w.engine) })
	g.Go(func() error { return w.locks.keep(ctx, w.engine) })
	g.Go(func() error { return w.watchLocks(ctx) })
	return g.Wait()
}

// Release ends the session: it revokes the leases of the locks, within the context.
// The others run out.
func (w *EngineWriter) Release(ctx context.Context) {
	w.held.clear()          // before others can have the locks
	_ = w.locks.Revoke(ctx) // what cannot be revoked runs out
	w.held.clear()          // of those that were taken meanwhile
	if w.ours {
		w.leases.abandon()
	}
}

// Put implements [Writer].
func (w *EngineWriter) Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error) {
	r := requested(opts)
	if key == "" {
		return Result{}, misused("put", key, errEmptyKey) // before a lease is asked for
	}
	if r.leased {
		return w.putLeased(ctx, key, value, r)
	}
	res, err := w.put(ctx, key, value, 0, r)
	w.detach(key, res)
	return res, err
}

// put makes one try, with the lease that the key is to be tied to, 0 for none. Under
// IfChanged it looks first: a read takes neither raft nor the disk of a server, as a
// transaction that might write does even when it does not.
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

// leaseAttempts is how many leases are tried: one that has just ended is replaced.
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

// attach is Leases.attach with the error of an operation.
func (w *EngineWriter) attach(ctx context.Context, leases *Leases, op, key string) (int64, error) {
	id, err := leases.attach(ctx, key)
	if err == nil || ctx.Err() != nil {
		return id, err
	}
	if ke, is := errors.AsType[*KeyError](err); is {
		err = ke.Err // it is about the key
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

// detach notes that the key was deleted, or written without a lease, if it was.
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

// outcomeOf a write. A put under IfChanged that had nothing to do has met its conditions:
// the key is tied.
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
