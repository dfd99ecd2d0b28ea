package xdsserver

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
)

// listener wraps a listener, so that its connections are counted.
func (i *intake) listener(l net.Listener) net.Listener { return &intakeListener{l, i} }

type intakeListener struct {
	net.Listener
	of *intake
}

// Accept implements [net.Listener].
func (l *intakeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &intakeConn{Conn: conn, of: l.of, peer: transport.PeerOf(conn.RemoteAddr()), in: frames{left: len(preface)}, streams: make(map[uint32]*intakeStream)}
	if socket := transport.Socket(conn); socket != nil {
		if raw, err := socket.SyscallConn(); err == nil { // otherwise it is read like a connection without a socket
			c.raw = raw
		}
	}
	return c, nil
}

// intakeConn is a connection whose unreceived data is counted.
type intakeConn struct {
	net.Conn
	of   *intake
	raw  syscall.RawConn // nil: it has no socket
	peer netip.Addr      // the zero address of a unix socket
	in   frames          // of the data that is read
	rest []byte          // data that was read from the connection, and not returned yet
	out  frames          // of the data that is written

	// Guarded by of.mu.
	streams map[uint32]*intakeStream
	held    int64     // sum of held of the streams
	since   time.Time // when held last changed, if it is above littleIntake
	waits   bool      // its reads wait for room, so its requests cannot become complete
	ended   bool      // it was closed to make room, and no longer counts
}

// intakeStream is a stream that is open, or has a handler. Guarded by of.mu of its connection.
type intakeStream struct {
	conn    *intakeConn
	id      uint32
	held    int64 // bytes that have come, and were not received
	handled bool  // a handler has it
	closed  bool  // no more data can come
}

// connAddr is the address of a client together with its connection.
type connAddr struct {
	net.Addr
	conn *intakeConn
}

// RemoteAddr returns the address with the connection, for gRPC.
func (c *intakeConn) RemoteAddr() net.Addr { return connAddr{c.Conn.RemoteAddr(), c} }

// plainAddr returns an address without its connection.
func plainAddr(a net.Addr) net.Addr {
	if with, is := a.(connAddr); is {
		return with.Addr
	}
	return a
}

// Read waits for room before it reads.
func (c *intakeConn) Read(p []byte) (int, error) {
	if !c.of.wait(c) {
		return 0, errNoIntake
	}
	if len(c.rest) > 0 {
		return c.next(p), nil
	}
	n, err := c.Conn.Read(p)
	return c.first(p[:n]), err
}

// ReadOnReady is like Read, but takes a buffer only when there is data. gRPC looks for this method. Without it, gRPC
// keeps 32 KiB for each connection, and most connections are idle.
func (c *intakeConn) ReadOnReady(size int, buffers mem.BufferPool) (*[]byte, int, error) {
	if !c.of.wait(c) {
		return nil, 0, errNoIntake
	}
	if len(c.rest) > 0 {
		buf := buffers.Get(size)
		return buf, c.next(*buf), nil
	}
	buf, n, err := c.readOnReady(size, buffers)
	if buf != nil {
		n = c.first((*buf)[:n])
	}
	return buf, n, err
}

// first returns how many bytes of p to return to gRPC first: up to the end of the head of a request, so that the next
// stream that gRPC opens is the one of this head. The other bytes stay in rest.
func (c *intakeConn) first(p []byte) int {
	n := c.of.came(c, p)
	if n < len(p) {
		c.rest = bytes.Clone(p[n:])
	}
	return n
}

// next copies the next part of rest into p, and returns its length.
func (c *intakeConn) next(p []byte) int {
	n := c.of.came(c, c.rest[:min(len(p), len(c.rest))])
	copy(p, c.rest[:n])
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n
}

func (c *intakeConn) readOnReady(size int, buffers mem.BufferPool) (buf *[]byte, n int, err error) {
	if c.raw == nil {
		buf = buffers.Get(size)
		if n, err = c.Conn.Read(*buf); n > 0 {
			return buf, n, err
		}
		buffers.Put(buf)
		return nil, 0, err
	}
	var failed error
	err = c.raw.Read(func(fd uintptr) (done bool) {
		buf, failed = buffers.Get(size), syscall.EINTR
		for errors.Is(failed, syscall.EINTR) {
			n, failed = syscall.Read(int(fd), *buf) //nolint:gosec // a file descriptor
		}
		if n <= 0 {
			buffers.Put(buf)
			buf = nil
		}
		return !errors.Is(failed, syscall.EAGAIN)
	})
	switch err = cmp.Or(err, failed); {
	case err != nil:
		return nil, 0, err
	case n == 0:
		return nil, 0, io.EOF
	}
	return buf, n, nil
}

// Write notes which streams the server ends.
func (c *intakeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.of.sent(c, p[:n])
	return n, err
}

// Close releases the counted bytes, and closes the connection.
func (c *intakeConn) Close() error {
	c.of.release(c)
	return c.Conn.Close()
}
