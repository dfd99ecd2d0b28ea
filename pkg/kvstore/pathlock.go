package kvstore

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// pathLocks are the locks of paths within this process, served in the order of the calls.
type pathLocks struct {
	mu    sync.Mutex
	paths map[string]*pathLock // those that are held or waited for; guarded by mu
}

type pathLock struct {
	turn  *semaphore.Weighted
	users int // guarded by the mu of the pathLocks
}

func newPathLocks() *pathLocks { return &pathLocks{paths: make(map[string]*pathLock)} }

// acquire waits until the path is free, and takes it.
func (p *pathLocks) acquire(ctx context.Context, path string) error {
	p.mu.Lock()
	l := p.paths[path]
	if l == nil {
		l = &pathLock{turn: semaphore.NewWeighted(1)}
		p.paths[path] = l
	}
	l.users++
	p.mu.Unlock()
	if l.turn.Acquire(ctx, 1) != nil {
		p.leave(path, 0)
		return context.Cause(ctx)
	}
	return nil
}

// try takes the path if it is free.
func (p *pathLocks) try(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paths[path] != nil {
		return false
	}
	l := &pathLock{turn: semaphore.NewWeighted(1), users: 1}
	p.paths[path] = l
	return l.turn.TryAcquire(1)
}

// release gives the path to the next one.
func (p *pathLocks) release(path string) { p.leave(path, 1) }

// leave gives back what was taken of the path, and forgets it with its last user.
func (p *pathLocks) leave(path string, taken int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.paths[path]
	l.turn.Release(taken)
	if l.users--; l.users == 0 {
		delete(p.paths, path)
	}
}
