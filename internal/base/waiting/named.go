package waiting

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// NamedLocks are locks that are known by their names, within this process, served in the order of
// the calls. The methods may be called from any goroutine.
type NamedLocks struct {
	mu    sync.Mutex
	named map[string]*namedLock // those that are held or waited for; guarded by mu
}

type namedLock struct {
	turn  *semaphore.Weighted
	users int // guarded by the mu of the NamedLocks
}

// NewNamedLocks returns locks that are free.
func NewNamedLocks() *NamedLocks { return &NamedLocks{named: make(map[string]*namedLock)} }

// Acquire waits until the lock is free, and takes it. The error is the cause of ctx's end.
func (n *NamedLocks) Acquire(ctx context.Context, name string) error {
	n.mu.Lock()
	l := n.named[name]
	if l == nil {
		l = &namedLock{turn: semaphore.NewWeighted(1)}
		n.named[name] = l
	}
	l.users++
	n.mu.Unlock()
	if l.turn.Acquire(ctx, 1) != nil {
		n.leave(name, 0)
		return context.Cause(ctx)
	}
	return nil
}

// Try takes the lock if it is free.
func (n *NamedLocks) Try(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.named[name] != nil {
		return false
	}
	l := &namedLock{turn: semaphore.NewWeighted(1), users: 1}
	n.named[name] = l
	return l.turn.TryAcquire(1)
}

// Release gives the lock to the next one.
func (n *NamedLocks) Release(name string) { n.leave(name, 1) }

// leave releases the taken part of the lock, and deletes the lock with its last user.
func (n *NamedLocks) leave(name string, taken int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.named[name]
	l.turn.Release(taken)
	if l.users--; l.users == 0 {
		delete(n.named, name)
	}
}
