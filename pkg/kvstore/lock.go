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
	// At is the position at which the lock was found to be ours alone: whatever
	// others have done while they held it is at or before it.
	At Position

	// TTL is how long it outlives its holder.
	TTL time.Duration

	unlock  sync.Once
	free    func()        // gives up the lock; set by whoever made it
	lose    func()        // notes that it is not held any more; likewise
	lost    chan struct{} // closed by lose
	lasting atomic.Bool
}

// Lost returns a channel that is closed once it is known, while the lock is not
// given up, that it is not held any more: its lease has ended or got no answer for
// as long as it lasts, what relied on it was refused, or its session was closed. That may
// be later than somebody else holds it, so that writes need [Holding] nevertheless.
// Unlock does not close it.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// NotHeld is for engines: it notes that an operation that relied on the lock was
// refused because it is not held any more, and returns the error of that.
func (l *Lock) NotHeld() error {
	if l.lose != nil { // nil until it is held, and of one that nobody took
		l.lose()
	}
	return lostBy(l)
}

// lostBy is the error of who relies on a lock that is not held any more.
func lostBy(l *Lock) error { return fmt.Errorf("%w: %s", ErrLockLeaseExpired, l.Path) }

// Lasting tells that the lock is to be held for long, so that nobody is warned of
// it (Timings.StaleLock).
func (l *Lock) Lasting() { l.lasting.Store(true) }

// Unlock gives the lock up. It may be called twice, and after the lease has
// ended; it never blocks the next local waiter. When the kvstore cannot be
// reached, the lock ends there with its lease.
func (l *Lock) Unlock() { l.unlock.Do(l.free) }

// heldLocks are the conditions that prove that the locks are held; nil locks are none.
func heldLocks(locks []*Lock) []Condition {
	var held []Condition
	for _, l := range locks {
		if l != nil {
			held = append(held, l.held())
		}
	}
	return held
}

// held is the condition that proves that the lock is held.
func (l *Lock) held() Condition {
	return Condition{Kind: CreatedAt, Key: l.Key, Number: l.Revision}
}
