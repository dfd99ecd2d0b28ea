package kvstore

import (
	"context"
	"slices"
	"sync"
)

// pathLocks are the locks of paths within this process, served in the order of the calls.
type pathLocks struct {
	mu    sync.Mutex
	paths map[string][]chan struct{} // who waits for each path that is held; guarded by mu
}

func newPathLocks() *pathLocks { return &pathLocks{paths: make(map[string][]chan struct{})} }

// acquire waits until the path is free, and takes it.
func (p *pathLocks) acquire(ctx context.Context, path string) error {
	turn := p.queue(path)
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		p.leave(path, turn)
		return context.Cause(ctx)
	}
}

// try takes the path if it is free.
func (p *pathLocks) try(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, held := p.paths[path]; held {
		return false
	}
	p.paths[path] = nil
	return true
}

// queue returns a channel that is closed when the path is the caller's.
func (p *pathLocks) queue(path string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := make(chan struct{})
	if waiters, held := p.paths[path]; held {
		p.paths[path] = append(waiters, turn)
	} else {
		p.paths[path] = nil
		close(turn)
	}
	return turn
}

// leave gives up waiting, or the path, when its turn has come meanwhile.
func (p *pathLocks) leave(path string, turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-turn:
		p.next(path)
		return
	default:
	}
	p.paths[path] = slices.DeleteFunc(p.paths[path], func(t chan struct{}) bool { return t == turn })
}

// release gives the path to the next one.
func (p *pathLocks) release(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next(path)
}

// next gives the path to who waits first; mu is held.
func (p *pathLocks) next(path string) {
	waiters := p.paths[path]
	if len(waiters) == 0 {
		delete(p.paths, path)
		return
	}
	close(waiters[0])
	p.paths[path] = waiters[1:]
}
