package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

// SpareConnections is how many connections beyond the limit are kept for the moment
// that it takes to say so. What comes on top is closed at once.
const SpareConnections = 64

type boundedListener struct {
	net.Listener
	connections *Gate
	spare       *semaphore.Weighted
}

// Bounded returns a listener whose connections are counted by a gate. What comes beyond its limit is
// closed at once.
func Bounded(l net.Listener, connections *Gate) net.Listener {
	return &boundedListener{l, connections, semaphore.NewWeighted(0)}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := PeerOf(conn.RemoteAddr())
		if leave, ok := l.connections.Enter(peer); ok {
			return &boundedConn{Conn: conn, peer: peer, leave: leave}, nil
		}
		if l.spare.TryAcquire(1) {
			return &boundedConn{Conn: conn, peer: peer, over: true, leave: sync.OnceFunc(func() { l.spare.Release(1) })}, nil
		}
		_ = conn.Close()
	}
}

// PeerOf is what is counted as one peer, of an address of a connection; the zero address when it has none.
func PeerOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return peerOf(tcp.AddrPort().Addr())
}

// boundedConn is counted until it is closed.
type boundedConn struct {
	net.Conn
	peer  netip.Addr
	over  bool // beyond the limit: it is refused
	leave func()
}

func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

type originKey struct{}

// Origin is where a request comes from. The zero value, of requests that did not
// come over a listener of the server, is an unknown client.
type Origin struct {
	Local bool // over the unix socket
	Peer  netip.Addr
	Over  bool // on a connection beyond the limit
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
		return context.WithValue(ctx, originKey{}, Origin{Peer: c.peer, Over: c.over})
	}
	return ctx
}

// OriginOf is where the request with this context comes from.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
