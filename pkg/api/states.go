package api

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// states lends turns to watches that are sent a whole state: the snapshot that it is
// read from is kept meanwhile, for as long as the reader takes. Other than at a [gate],
// who is beyond a limit may wait, and this machine is a peer as any other. It is safe
// for concurrent use.
type states struct {
	limit   Limit
	refused refused
	all     *semaphore.Weighted

	mu    sync.Mutex
	peers map[netip.Addr]*peerStates // of those that have or want a turn
}

// peerStates are the turns of one peer.
type peerStates struct {
	turns *semaphore.Weighted
	users int // that have or want one; mu of states
}

func newStates(l Limit) *states {
	return &states{limit: l, all: semaphore.NewWeighted(int64(l.All)), peers: make(map[netip.Addr]*peerStates)}
}

// ofAll waits until fewer than all turns are taken, or ctx ends. It returns how to end
// the turn, which may be called again.
func (s *states) ofAll(ctx context.Context) (leave func(), err error) {
	if err := s.all.Acquire(ctx, 1); err != nil {
		tooLate(&s.refused.all, err)
		return nil, err
	}
	return sync.OnceFunc(func() { s.all.Release(1) }), nil
}

// ofPeer is ofAll for what one peer may have.
func (s *states) ofPeer(ctx context.Context, peer netip.Addr) (leave func(), err error) {
	p := s.join(peer)
	if err := p.turns.Acquire(ctx, 1); err != nil {
		s.leave(peer, p)
		tooLate(&s.refused.peer, err)
		return nil, err
	}
	return sync.OnceFunc(func() {
		p.turns.Release(1)
		s.leave(peer, p)
	}), nil
}

func (s *states) join(peer netip.Addr) *peerStates {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.peers[peer]
	if p == nil {
		p = &peerStates{turns: semaphore.NewWeighted(int64(s.limit.Peer))}
		s.peers[peer] = p
	}
	p.users++
	return p
}

func (s *states) leave(peer netip.Addr, p *peerStates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(s.peers, peer)
	}
}

// tooLate counts who was not given a turn in time. Who went away was not refused.
func tooLate(count *atomic.Uint64, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		count.Add(1)
	}
}
