package transport

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
)

// SpareConnections is the number of connections that may exist beyond the limit: probes are answered on them, and
// other requests are refused.
const SpareConnections = 256

type boundedListener struct {
	net.Listener
	connections, spare *lane
}

// Bounded returns a listener whose connections a gate counts. A connection beyond the limit is closed at once.
func Bounded(l net.Listener, connections *Gate) net.Listener {
	return &boundedListener{Listener: l, connections: newLane(connections)}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &boundedConn{Conn: conn, peer: PeerOf(conn.RemoteAddr())}
		reached := l.connections.enter(c)
		if reached == within {
			return c, nil
		}
		l.connections.gate.refuse(reached)
		if c.over = true; l.spare != nil && l.spare.enter(c) == within {
			return c, nil
		}
		_ = conn.Close()
	}
}

// PeerOf returns the peer that a connection's address counts as; the zero address when it has none.
func PeerOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return Peer(tcp.AddrPort().Addr())
}

// boundedConn is counted until it is closed.
type boundedConn struct {
	net.Conn
	peer  netip.Addr
	over  bool // beyond the limit: only probes are answered
	lane  *lane
	leave func()
	place *list.Element // in the lane, while it waits; guarded by the lane's mu
}

func (c *boundedConn) Close() error {
	defer c.leave()
	c.lane.setWaiting(c, false)
	return c.Conn.Close()
}

// Socket returns the socket of a listener's connection, also of one that [Bounded] returned; nil when it has none.
func Socket(c net.Conn) syscall.Conn {
	if bounded, is := c.(*boundedConn); is {
		c = bounded.Conn
	}
	socket, _ := c.(syscall.Conn)
	return socket
}

// lane is a gate that can take places back from connections that wait: connections without a request yet, with an
// incomplete request, or without a new request since their last answer.
type lane struct {
	gate *Gate

	mu      sync.Mutex
	waiting list.List // of *boundedConn; the one that waits longest is first
}

func newLane(g *Gate) *lane { return &lane{gate: g} }

// newSpareLane returns the lane of connections beyond the limit.
func newSpareLane() *lane {
	return newLane(NewGate(Limit{All: SpareConnections, Peer: SpareConnections}, Refusals{}))
}

// enter gives a connection a place; when none is free, it takes the place of a waiting connection.
func (l *lane) enter(c *boundedConn) reach {
	for {
		leave, reached := l.gate.enter(c.peer)
		if reached != within {
			if !l.takeBack(c.peer, reached) {
				return reached
			}
			l.gate.refuse(reached)
			continue
		}
		c.lane, c.leave = l, leave
		return within
	}
}

// takeBack closes the connection that has waited longest, of those that count for the reached limit.
func (l *lane) takeBack(peer netip.Addr, reached reach) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		c := e.Value.(*boundedConn)
		if reached == ofPeer && c.peer != peer || reached == ofRemote && c.peer == thisMachine {
			continue
		}
		l.waiting.Remove(e)
		c.place = nil
		_ = c.Conn.Close() // its server notices that, and closes it again
		c.leave()
		return true
	}
	return false
}

// setWaiting sets whether a connection waits.
func (l *lane) setWaiting(c *boundedConn, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case waits && c.place == nil:
		c.place = l.waiting.PushBack(c)
	case !waits && c.place != nil:
		l.waiting.Remove(c.place)
		c.place = nil
	}
}

// NoteState is for [net/http.Server.ConnState]: a connection that waits for its client may lose its place to another
// one. It waits until [Origin.Serving] is called for a request.
func NoteState(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if c, ok := conn.(*boundedConn); ok && (state == http.StateNew || state == http.StateIdle) {
		c.lane.setWaiting(c, true)
	}
}

type originKey struct{}

// Origin is the origin of a request. The zero value is an unknown client; it is the origin of requests that did not
// come over a listener of the server.
type Origin struct {
	Local bool // over the unix socket
	Peer  netip.Addr
	Over  bool // on a connection beyond the limit
	conn  *boundedConn
}

// Serving records that a whole request was received: its connection no longer waits.
func (o Origin) Serving() {
	if o.conn != nil {
		o.conn.lane.setWaiting(o.conn, false)
	}
}

// MarkOrigin is for [net/http.Server.ConnContext].
func MarkOrigin(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	switch c := c.(type) {
	case *net.UnixConn:
		return context.WithValue(ctx, originKey{}, Origin{Local: true})
	case *boundedConn:
		return context.WithValue(ctx, originKey{}, Origin{Peer: c.peer, Over: c.over, conn: c})
	}
	return ctx
}

// OriginOf returns the origin of the request with this context.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
