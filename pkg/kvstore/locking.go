package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// Lock implements [Writer].
func (w *EngineWriter) Lock(ctx context.Context, path string) (*Lock, error) {
	if path == "" {
		return nil, misused("lock", path, errEmptyKey)
	}
	caller := callerName()
	bound, cancel := context.WithTimeout(ctx, w.o.LockWait)
	defer cancel()
	c := &contest{w: w, path: path}
	l, err := c.win(bound)
	switch {
	case err == nil:
		l.free, l.lose, l.TTL = func() { w.unlock(l) }, func() { w.held.lose(l) }, w.o.LockTTL
		w.held.add(l, c.lease, caller, time.Now())
		if !w.locks.owns(c.lease) {
			l.lose() // the lease ended before the lock was in the table
		}
		return l, nil
	case ctx.Err() != nil && c.holder == "":
		return nil, ctx.Err()
	case ctx.Err() != nil:
		return nil, fmt.Errorf("waiting for the lock %q, held by %s: %w", path, c.holder, ctx.Err())
	case bound.Err() != nil:
		err = &LockTimeoutError{w.o.LockWait, c.holder}
	}
	if _, done := errors.AsType[*KeyError](err); !done {
		err = w.failed("lock", path, err)
	}
	return nil, err
}

// LockTimeoutError is the error when a lock was not free in time. It is a [context.DeadlineExceeded].
type LockTimeoutError struct {
	After  time.Duration
	Holder string // empty when unknown
}

// Error has the duration of the wait, and the holder of the lock.
func (e *LockTimeoutError) Error() string {
	s := fmt.Sprintf("not free within %s", e.After)
	if e.Holder != "" {
		s += ", held by " + e.Holder
	}
	return s
}

// Unwrap makes the error a timeout.
func (e *LockTimeoutError) Unwrap() error { return context.DeadlineExceeded }

// contest is one attempt to get a lock: first within this process, then among all clients of the kvstore.
type contest struct {
	w      *EngineWriter
	path   string
	key    string // our key, once it may exist
	lease  int64  // the lease of our key
	holder string // the holder that we wait for; empty when unknown
}

func (c *contest) win(ctx context.Context) (*Lock, error) {
	c.holder = c.w.held.holder(c.path)
	if err := c.w.paths.Acquire(ctx, c.path); err != nil {
		return nil, err
	}
	c.holder = ""
	l, err := c.winOutside(ctx)
	if err != nil {
		if c.key != "" {
			c.w.held.leave(c.path, c.key)
		}
		c.w.paths.Release(c.path)
		return nil, err
	}
	return l, nil
}

// winOutside gets the lock among all clients. It starts again when our key is lost because its lease has ended.
func (c *contest) winOutside(ctx context.Context) (*Lock, error) {
	if !c.w.o.NoQuorumCheck {
		if err := c.w.proveQuorum(ctx, c.path); err != nil {
			return nil, err
		}
	}
	for {
		l, before, err := c.enter(ctx)
		if err == nil && before != "" {
			err = c.await(ctx, l)
		}
		if !errors.Is(err, ErrLockLeaseExpired) {
			return l, err
		}
	}
}

func (c *contest) transaction(cond Condition, success []TxnOp, failure TxnOp) Transaction {
	return Transaction{Op: "lock", Key: c.path, Txn: Txn{If: []Condition{cond}, Then: success, Else: []TxnOp{failure}}}
}

// enter creates our key, and returns the newest key of the path that was created before it. If it is
// empty, we hold the lock. If our key already exists, it was left behind, because only this contest
// holds the path in this process. It is deleted first, so that a pending deletion cannot delete the new key.
func (c *contest) enter(ctx context.Context) (l *Lock, before string, err error) {
	for {
		lease, err := c.w.attach(ctx, c.w.locks, "lock", c.path)
		if err != nil {
			return nil, "", err
		}
		c.key, c.lease = fmt.Sprintf("%s/%x", c.path, lease), lease
		t := c.transaction(
			Condition{Kind: CreatedAt, Key: c.key},
			[]TxnOp{
				c.others(0), // before the put, so that it does not read our key
				{Kind: OpPut, Key: c.key, Lease: lease},
			},
			deletion(c.key, ""),
		)
		res, at, err := c.w.transact(ctx, t)
		c.w.locks.with(func(b *leaseBook) { b.record(c.path, lease, outcomeOf(res.Succeeded, err), at.Revision) })
		switch {
		case errors.Is(err, ErrLeaseNotFound):
			c.w.locks.end([]int64{lease}, leaseUnknown)
		case err != nil:
			return nil, "", err
		case res.Succeeded:
			c.w.held.entered(c.path)
			l := &Lock{Path: c.path, Key: c.key, Revision: at.Revision, At: at, lost: make(chan struct{})}
			return l, c.latest(res), nil
		}
	}
}

// await waits until all keys of the path that are older than ours are deleted.
func (c *contest) await(ctx context.Context, l *Lock) error {
	for {
		before, at, err := c.before(ctx, l)
		if err != nil {
			return err
		}
		if l.At = at; before == "" {
			return nil
		}
		c.holder = before
		if err := c.w.gone(ctx, before, at); err != nil {
			return err
		}
	}
}

// before returns the newest key of the path that is older than ours, empty for none. The same
// transaction proves that our own key still exists.
func (c *contest) before(ctx context.Context, l *Lock) (string, Position, error) {
	t := c.transaction(l.held(), []TxnOp{c.others(l.Revision - 1)}, readKey(l.Key))
	t.Locks = []*Lock{l}
	res, at, err := c.w.transact(ctx, t)
	if err != nil {
		return "", at, err
	}
	return c.latest(res), at, nil
}

// others reads the keys below the path that were created up to a revision; 0: all of them.
func (c *contest) others(upTo int64) TxnOp {
	from := c.path + "/"
	return TxnOp{Kind: OpRead, Key: from, End: SelectionEnd(from), KeysOnly: true, MaxCreated: upTo}
}

// latest returns the newest key of the path in the first part of an answer; empty for none. Keys
// with another "/" after the path belong to other paths.
func (c *contest) latest(res TxnResult) string {
	key, rev := "", int64(0)
	for _, kv := range res.Parts[0].Found {
		if kv.Created > rev && !strings.Contains(string(kv.Key[len(c.path)+1:]), "/") {
			key, rev = string(kv.Key), kv.Created
		}
	}
	return key
}

// gone waits until a key is deleted, or until the caller should read the keys again.
func (w *EngineWriter) gone(ctx context.Context, key string, after Position) error {
	st, err := w.engine.WatchNow(ctx, key, after)
	if err == nil {
		defer st.Close()
		err = untilDeleted(st)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, ErrClosed), errors.Is(err, ErrServerChanged), errors.Is(err, ErrPermissionDenied):
		return err
	default: // the stream broke; the next request shows whether the server answers
		return waiting.Sleep(ctx, brokenPause)
	}
}

func untilDeleted(st Stream) error {
	for {
		b, err := st.Recv()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(b.Events, func(ev Event) bool { return ev.Type == EventDelete }) {
			return nil
		}
	}
}

// brokenPause is the pause between a broken stream and the next request for the lock.
const brokenPause = 50 * time.Millisecond

// unlockTimeout bounds an unlock. A key that is not deleted by then is deleted later by cleanUp,
// or when its lease ends.
const unlockTimeout = 2 * time.Second

// unlock releases a lock. It releases the local path first: the next goroutine that takes the path
// replaces our key. Our deletion then does no harm, since it requires the create revision of this lock.
func (w *EngineWriter) unlock(l *Lock) {
	w.held.remove(l)
	w.paths.Release(l.Path)
	ctx, cancel := context.WithTimeout(context.Background(), min(unlockTimeout, w.o.Write))
	defer cancel()
	if err := w.deleteLock(ctx, l.Path, l.Key, l.held()); err != nil {
		w.held.leave(l.Path, l.Key)
	}
}

// deleteLock deletes the key of a lock, if the conditions hold.
func (w *EngineWriter) deleteLock(ctx context.Context, path, key string, as ...Condition) error {
	res, at, err := w.transact(ctx, Transaction{Op: "unlock", Key: path, Txn: Txn{If: as, Then: []TxnOp{deletion(key, "")}}})
	if err == nil && res.Succeeded {
		w.locks.with(func(b *leaseBook) { b.detach(path, at.Revision) })
	}
	return err
}

// Lock is a lock that was acquired with [Writer.Lock]. Its methods may be called by any goroutine.
type Lock struct {
	// Path is the locked path.
	Path string
	// Key is the key of the lock, and Revision its create revision: the lock is
	// held while this key has this create revision.
	Key      string
	Revision int64
	// At is a position at which no other client held the lock: every write that
	// others made while they held it is at or before At.
	At Position
	// TTL is how long the lock outlives its holder.
	TTL time.Duration

	unlock  sync.Once
	free    func()        // releases the lock
	lose    func()        // records that the lock is no longer held; nil until it is held
	lost    chan struct{} // closed by lose
	lasting atomic.Bool
}

// Lost returns a channel that is closed once it is known that the lock is no longer held: its lease
// has ended or got no answer for its TTL, an operation that relied on the lock was refused, or its
// session was closed. Another client may hold the lock before that, so writes need [Holding]
// nevertheless. Unlock does not close the channel.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// MarkLost is for engines: it records that an operation that relied on the lock was refused
// because the lock is no longer held, and returns the error of this operation.
func (l *Lock) MarkLost() error {
	if l.lose != nil {
		l.lose()
	}
	return lostBy(l)
}

// lostBy returns the error of an operation that relies on a lock that is no longer held.
func lostBy(l *Lock) error { return fmt.Errorf("%w: %s", ErrLockLeaseExpired, l.Path) }

// Lasting declares that the lock will be held for a long time, so that no warning is logged
// (WriterOptions.StaleLock).
func (l *Lock) Lasting() { l.lasting.Store(true) }

// Unlock releases the lock. It may be called more than once, and after the lease has ended. It never
// blocks the next local waiter. When the kvstore cannot be reached, the lock ends there with its lease.
func (l *Lock) Unlock() { l.unlock.Do(l.free) }

// held is the condition that proves that the lock is held.
func (l *Lock) held() Condition {
	return Condition{Kind: CreatedAt, Key: l.Key, Number: l.Revision}
}
