package kvstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lock is a lock that was acquired with [Writer.Lock]. Its methods may be called
// by any goroutine.
type Lock struct {
	// Path is what was locked.
	Path string
	// Key is the key of the lock, and Revision that at which it was created:
	// the lock is held while this key has this create revision.
	Key      string
	Revision int64
	// At is the position at which nobody else held the lock any more: whatever
	// others have done while they held it is at or before it.
	At Position
	// TTL is how long it outlives its holder.
	TTL time.Duration

	unlock  sync.Once
	free    func()        // gives up the lock
	lose    func()        // notes that it is not held any more; nil until it is held
	lost    chan struct{} // closed by lose
	lasting atomic.Bool
}

// Lost returns a channel that is closed once it is known that the lock is not held any more:
// its lease has ended or got no answer for as long as it lasts, what relied on it was refused,
// or its session was closed. Somebody else may hold it before that, so writes need [Holding]
// nevertheless. Unlock does not close it.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// NotHeld is for engines: it notes that an operation that relied on the lock was
// refused because it is not held any more, and returns the error of that.
func (l *Lock) NotHeld() error {
	if l.lose != nil {
		l.lose()
	}
	return lostBy(l)
}

// lostBy is the error of an operation that relies on a lock that is not held any more.
func lostBy(l *Lock) error { return fmt.Errorf("%w: %s", ErrLockLeaseExpired, l.Path) }

// Lasting says that the lock is to be held for long, so that no warning is logged
// (WriterOptions.StaleLock).
func (l *Lock) Lasting() { l.lasting.Store(true) }

// Unlock gives the lock up. It may be called twice, and after the lease has ended; it never
// blocks the next local waiter. When the kvstore cannot be reached, the lock ends there with
// its lease.
func (l *Lock) Unlock() { l.unlock.Do(l.free) }

// held is the condition that proves that the lock is held.
func (l *Lock) held() Condition {
	return Condition{Kind: CreatedAt, Key: l.Key, Number: l.Revision}
}
