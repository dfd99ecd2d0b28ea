// Package transport is how HTTP is served to untrusted clients: where it is listened to, over
// TLS or not, who asks, how much of everything they may have at once, and answers without
// an end. What is answered is [github.com/mesh-agent/mesh-agent/internal/serve/httpapi]'s.
//
// Concurrency: everything may be used by any number of goroutines, unless its comment
// says otherwise. Nothing is kept of a connection that has ended.
package transport

import (
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Limit bounds how many of something there may be at once.
type Limit struct {
	All  int // together
	Peer int // of one address; this machine may have more, see [Gate]
}

// Limits bounds what those who come over TCP may have at once. Nobody is asked who
// they are, so it is what they can cost. The unix socket has no such limits.
type Limits struct {
	Connections Limit
	Watches     Limit
	Answers     Limit // everything that is no watch, and no probe
	States      Limit // watches that are sent a whole state, or are far behind
}

// DefaultLimits are those of a server that is given no others.
func DefaultLimits() Limits {
	return Limits{
		Connections: Limit{All: 4096, Peer: 1024},
		Watches:     Limit{All: 2500, Peer: 500},
		Answers:     Limit{All: 64, Peer: 16},
		States:      Limit{All: 32, Peer: 8},
	}
}

// peerBits is how much of an IPv6 address tells peers apart: a machine has a whole
// network of that length for itself.
const peerBits = 64

// thisMachine is the peer that all loopback addresses are.
var thisMachine = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Peer is what is counted as one peer: an address, its network, or this machine, any of whose processes may use
// any of its loopback addresses.
func Peer(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.IsLoopback() {
		return thisMachine
	} else if a.Is6() {
		if p, err := a.Prefix(peerBits); err == nil {
			return p.Addr()
		}
	}
	return a
}

// Refusals counts what a [Limit] has refused. Without counters, nobody counts.
type Refusals struct{ All, Peer prometheus.Counter }

// Gate counts what there is, in all and of each peer. Neither this machine nor all other peers together have
// everything: a part is left for the others, as much as one peer may have, and a quarter at most. It is safe for
// concurrent use.
type Gate struct {
	limit   Limit
	refused Refusals

	mu     sync.Mutex
	all    int
	remote int                // of other peers than this machine
	peers  map[netip.Addr]int // without those that have none
}

// NewGate returns a gate that nothing has entered.
func NewGate(l Limit, refused Refusals) *Gate {
	return &Gate{limit: l, refused: refused, peers: make(map[netip.Addr]int)}
}

// reach is which limit is reached.
type reach int

const (
	within   reach = iota
	ofPeer         // that of one peer, or of this machine
	ofRemote       // that of all other peers than this machine
	ofAll
)

// Enter counts one more until leave is called, which may be called again; false
// when a limit is reached.
func (g *Gate) Enter(peer netip.Addr) (leave func(), ok bool) {
	leave, reached := g.enter(peer)
	if reached != within {
		g.refuse(reached)
	}
	return leave, reached == within
}

func (g *Gate) enter(peer netip.Addr) (leave func(), reached reach) {
	peer = Peer(peer)
	g.mu.Lock()
	defer g.mu.Unlock()
	if reached = g.reached(peer); reached != within {
		return nil, reached
	}
	g.count(peer, 1)
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.count(peer, -1)
	}), within
}

func (g *Gate) reached(peer netip.Addr) reach {
	side := g.limit.All - min(g.limit.Peer, g.limit.All/4)
	switch {
	case g.all >= g.limit.All:
		return ofAll
	case !peer.IsValid():
		return within
	case peer == thisMachine && g.peers[peer] >= side, peer != thisMachine && g.peers[peer] >= g.limit.Peer:
		return ofPeer
	case peer != thisMachine && g.remote >= side:
		return ofRemote
	}
	return within
}

func (g *Gate) count(peer netip.Addr, by int) {
	g.all += by
	if !peer.IsValid() {
		return
	}
	if peer != thisMachine {
		g.remote += by
	}
	if g.peers[peer] += by; g.peers[peer] == 0 {
		delete(g.peers, peer)
	}
}

func (g *Gate) refuse(reached reach) {
	counter := g.refused.All
	if reached == ofPeer {
		counter = g.refused.Peer
	}
	if counter != nil {
		counter.Inc()
	}
}
