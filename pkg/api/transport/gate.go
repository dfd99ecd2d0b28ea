// Package transport is how HTTP is served to untrusted clients: where it is listened to, over
// TLS or not, who asks, how much of everything they may have at once, and answers without
// an end. What is answered is [github.com/mesh-agent/mesh-agent/pkg/api]'s.
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
	Peer int // of one address; but for States, those of this machine share All alone
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

// peerOf is what is counted as one peer: an address, or its network.
func peerOf(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(peerBits); err == nil {
			return p.Addr()
		}
	}
	return a
}

// Refusals counts what a [Limit] has refused.
type Refusals struct{ All, Peer prometheus.Counter }

// Gate counts what there is, in all and of each peer. It is safe for concurrent use.
type Gate struct {
	limit   Limit
	refused Refusals

	mu    sync.Mutex
	all   int
	peers map[netip.Addr]int // without those that have none, and loopback
}

// NewGate returns a gate that nothing has entered.
func NewGate(l Limit, refused Refusals) *Gate {
	return &Gate{limit: l, refused: refused, peers: make(map[netip.Addr]int)}
}

// Enter counts one more until leave is called, which may be called again; false
// when a limit is reached.
func (g *Gate) Enter(peer netip.Addr) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	counted := peer.IsValid() && !peer.IsLoopback()
	switch {
	case counted && g.peers[peer] >= g.limit.Peer:
		g.refused.Peer.Inc()
		return nil, false
	case g.all >= g.limit.All:
		g.refused.All.Inc()
		return nil, false
	}
	g.all++
	if counted {
		g.peers[peer]++
	}
	return sync.OnceFunc(func() { g.left(peer, counted) }), true
}

func (g *Gate) left(peer netip.Addr, counted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if !counted {
		return
	}
	if g.peers[peer]--; g.peers[peer] == 0 {
		delete(g.peers, peer)
	}
}
