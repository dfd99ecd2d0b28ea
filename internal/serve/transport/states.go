package transport

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// States gives turns to watches that are behind: the view that a watch is sent is kept during its turn, for as long
// as the reader takes. Unlike at a [Gate], a watch beyond a limit may wait, and this machine is a peer like any
// other. It is safe for concurrent use.
type States struct {
	limit   Limit
	refused Refusals

	mu    sync.Mutex
	all   *turns
	peers map[netip.Addr]*turns // peers that have or want a turn
}

// turns are the turns of one peer, or of all. The fields except free are guarded by mu of States.
type turns struct {
	free    *semaphore.Weighted
	users   int // watches that have or want a turn
	waiting int
	missed  bool // a watch got no turn in time, and no turn has been released since
}

func (t *turns) wanted() bool { return t.waiting > 0 || t.missed }

func newTurns(n int) *turns { return &turns{free: semaphore.NewWeighted(int64(n))} }

// NewStates returns States whose turns are all free.
func NewStates(l Limit, refused Refusals) *States {
	return &States{limit: l, refused: refused, all: newTurns(l.All), peers: make(map[netip.Addr]*turns)}
}

// OfAll waits until one of all turns is free, or ctx ends. leave ends the turn, and may be called again.
func (s *States) OfAll(ctx context.Context) (leave func(), err error) {
	if err := s.wait(ctx, s.all, s.refused.All); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.release(s.all) }), nil
}

// OfPeer is OfAll for the turns of one peer.
func (s *States) OfPeer(ctx context.Context, peer netip.Addr) (leave func(), err error) {
	p := s.join(peer)
	if err := s.wait(ctx, p, s.refused.Peer); err != nil {
		s.leave(peer, p)
		return nil, err
	}
	return sync.OnceFunc(func() { s.leavePeer(peer, p) }), nil
}

// wait waits for a turn. A watch that gets none in time counts as refused; one whose client has left does not.
func (s *States) wait(ctx context.Context, t *turns, refused prometheus.Counter) error {
	if t.free.TryAcquire(1) {
		return nil
	}
	s.change(func() { t.waiting++ })
	err := t.free.Acquire(ctx, 1)
	s.change(func() {
		if t.waiting--; errors.Is(err, context.DeadlineExceeded) {
			t.missed = true
			refused.Inc()
		}
	})
	return err
}

func (s *States) release(t *turns) {
	s.change(func() { t.missed = false })
	t.free.Release(1)
}

func (s *States) leavePeer(peer netip.Addr, p *turns) {
	s.release(p)
	s.leave(peer, p)
}

func (s *States) change(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

func (s *States) join(peer netip.Addr) (p *turns) {
	s.change(func() {
		if p = s.peers[peer]; p == nil {
			p = newTurns(s.limit.Peer)
			s.peers[peer] = p
		}
		p.users++
	})
	return p
}

func (s *States) leave(peer netip.Addr, p *turns) {
	s.change(func() {
		if p.users--; p.users == 0 {
			delete(s.peers, peer)
		}
	})
}

// Peers returns the number of peers that have or want a turn.
func (s *States) Peers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers)
}

// PeerTurns gives one watch its turns, each with a turn of its peer and one of all. A stream of the view requests
// them.
type PeerTurns struct {
	States *States
	Peer   netip.Addr
	First  func() // ends the peer's part of the first turn; nil: not taken yet
}

// Take waits for a turn. The first turn has its peer's part already, if First is set.
func (t *PeerTurns) Take(ctx context.Context) (end func(), err error) {
	ofPeer := t.First
	t.First = nil
	if ofPeer == nil {
		if ofPeer, err = t.States.OfPeer(ctx, t.Peer); err != nil {
			return nil, err
		}
	}
	ofAll, err := t.States.OfAll(ctx)
	if err != nil {
		ofPeer()
		return nil, err
	}
	return func() { ofAll(); ofPeer() }, nil
}

// Try takes a turn if one is free.
func (t *PeerTurns) Try() (end func(), ok bool) {
	s, p := t.States, t.States.join(t.Peer)
	switch {
	case !p.free.TryAcquire(1):
		s.leave(t.Peer, p)
		return nil, false
	case !s.all.free.TryAcquire(1):
		s.leavePeer(t.Peer, p)
		return nil, false
	}
	return sync.OnceFunc(func() { s.release(s.all); s.leavePeer(t.Peer, p) }), true
}

// Wanted reports whether a watch waits for a turn that this peer has, or got none in time.
func (t *PeerTurns) Wanted() (wanted bool) {
	t.States.change(func() {
		p := t.States.peers[t.Peer]
		wanted = t.States.all.wanted() || p != nil && p.wanted()
	})
	return wanted
}
