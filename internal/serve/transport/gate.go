// Package transport serves HTTP to untrusted clients: the listeners, with or without TLS, the origin of requests, the
// limits of clients, and answers without an end. The answers themselves are from
// [github.com/mesh-agent/mesh-agent/internal/serve/httpapi].
//
// Concurrency: all functions and methods may be used by any number of goroutines, unless the comment of one states
// otherwise. No data of a connection is kept after it has ended.
package transport

import (
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Limit limits how many of something may exist at the same time.
type Limit struct {
	All  int // in total
	Peer int // of one address; this machine may have more, see [Gate]
}

// Limits are the limits of clients over TCP. Clients are not authenticated, so they limit what one address can cost.
// The unix socket has no such limits.
type Limits struct {
	Connections Limit
	Watches     Limit
	Answers     Limit // all requests except watches and probes
	States      Limit // watches that receive a whole state, or are far behind
}

// DefaultLimits returns the limits without any setting.
func DefaultLimits() Limits {
	return Limits{
		Connections: Limit{All: 4096, Peer: 1024},
		Watches:     Limit{All: 2500, Peer: 500},
		Answers:     Limit{All: 64, Peer: 16},
		States:      Limit{All: 32, Peer: 8},
	}
}

// peerBits is the prefix length of IPv6 addresses that count as one peer: a machine may use a whole network of that
// length.
const peerBits = 64

// thisMachine is the peer of all loopback addresses.
var thisMachine = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Peer returns the peer that an address counts as: an IPv4 address, an IPv6 network, or this machine. Loopback
// addresses are one peer, because any process of this machine may use any of them.
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

// Refusals counts the refusals of a [Limit]. For a [Gate] the counters may be nil.
type Refusals struct{ All, Peer prometheus.Counter }

// Gate counts entries, in total and per peer. Neither this machine nor all other peers together can use the whole
// limit: a part is reserved for the others, which is the limit of one peer, but at most a quarter of the total. It is
// safe for concurrent use.
type Gate struct {
	limit   Limit
	refused Refusals

	mu     sync.Mutex
	all    int
	remote int                // of peers other than this machine
	peers  map[netip.Addr]int // without entries that have no peer
}

// NewGate returns a gate without entries.
func NewGate(l Limit, refused Refusals) *Gate {
	return &Gate{limit: l, refused: refused, peers: make(map[netip.Addr]int)}
}

// reach is the limit that is reached.
type reach int

const (
	within   reach = iota
	ofPeer         // of one peer, or of this machine
	ofRemote       // of all peers other than this machine
	ofAll
)

// Enter counts one more entry until leave is called, which may be called again; false when a limit is reached.
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
