package api

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// states lends turns to watches that are behind: the view that they are sent is kept
// meanwhile, for as long as the reader takes. Other than at a [gate], who is beyond a
// limit may wait, and this machine is a peer as any other. It is safe for concurrent use.
type states struct {
	limit   Limit
	refused refused

	mu    sync.Mutex
	all   *turns
	peers map[netip.Addr]*turns // of those that have or want a turn
}

// turns are those of one peer, or of all. What is not free is guarded by mu of states.
type turns struct {
	free    *semaphore.Weighted
	users   int // that have or want one
	waiting int
	missed  bool // somebody had none in time, and none was given back since
}

func newTurns(n int) *turns { return &turns{free: semaphore.NewWeighted(int64(n))} }

func newStates(l Limit) *states {
	return &states{limit: l, all: newTurns(l.All), peers: make(map[netip.Addr]*turns)}
}

// ofAll waits until fewer than all turns are taken, or ctx ends. It returns how to end
// the turn, which may be called again.
func (s *states) ofAll(ctx context.Context) (leave func(), err error) {
	err = s.wait(ctx, s.all)
	if err != nil {
		tooLate(&s.refused.all, err)
		return nil, err
	}
	return sync.OnceFunc(func() { s.release(s.all) }), nil
}

// ofPeer is ofAll for what one peer may have.
func (s *states) ofPeer(ctx context.Context, peer netip.Addr) (leave func(), err error) {
	p := s.join(peer)
	if err := s.wait(ctx, p); err != nil {
		s.leave(peer, p)
		tooLate(&s.refused.peer, err)
		return nil, err
	}
	return sync.OnceFunc(func() { s.leavePeer(peer, p) }), nil
}

// try is ofPeer and ofAll for somebody who does not wait.
func (s *states) try(peer netip.Addr) (leave func(), ok bool) {
	p := s.join(peer)
	if !p.free.TryAcquire(1) {
		s.leave(peer, p)
		return nil, false
	}
	if !s.all.free.TryAcquire(1) {
		s.leavePeer(peer, p)
		return nil, false
	}
	return sync.OnceFunc(func() { s.release(s.all); s.leavePeer(peer, p) }), true
}

// wanted tells whether somebody waits for a turn that this peer has, or did so in vain.
func (s *states) wanted(peer netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []*turns{s.all, s.peers[peer]} {
		if t != nil && (t.waiting > 0 || t.missed) {
			return true
		}
	}
	return false
}

func (s *states) wait(ctx context.Context, t *turns) error {
	if t.free.TryAcquire(1) {
		return nil
	}
	s.change(func() { t.waiting++ })
	err := t.free.Acquire(ctx, 1)
	s.change(func() {
		t.waiting--
		t.missed = t.missed || errors.Is(err, context.DeadlineExceeded)
	})
	return err
}

func (s *states) release(t *turns) {
	s.change(func() { t.missed = false })
	t.free.Release(1)
}

func (s *states) leavePeer(peer netip.Addr, p *turns) {
	s.release(p)
	s.leave(peer, p)
}

func (s *states) change(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

func (s *states) join(peer netip.Addr) *turns {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.peers[peer]
	if p == nil {
		p = newTurns(s.limit.Peer)
		s.peers[peer] = p
	}
	p.users++
	return p
}

func (s *states) leave(peer netip.Addr, p *turns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(s.peers, peer)
	}
}

// peerTurns are the turns of one watch: its peer's, and one of all. It implements
// [view.Turns].
type peerTurns struct {
	states *states
	peer   netip.Addr
	first  func() // ends the peer's part of the first turn; nil: it is not taken yet
}

// Take implements [view.Turns]. The first state has its peer's part already.
func (t *peerTurns) Take(ctx context.Context) (end func(), err error) {
	ofPeer := t.first
	t.first = nil
	if ofPeer == nil {
		if ofPeer, err = t.states.ofPeer(ctx, t.peer); err != nil {
			return nil, err
		}
	}
	ofAll, err := t.states.ofAll(ctx)
	if err != nil {
		ofPeer()
		return nil, err
	}
	return func() { ofAll(); ofPeer() }, nil
}

// Try implements [view.Turns].
func (t *peerTurns) Try() (end func(), ok bool) { return t.states.try(t.peer) }

// Wanted implements [view.Turns].
func (t *peerTurns) Wanted() bool { return t.states.wanted(t.peer) }

// tooLate counts who was not given a turn in time. Who went away was not refused.
func tooLate(count *atomic.Uint64, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		count.Add(1)
	}
}
