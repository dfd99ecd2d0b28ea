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

// listener wraps one.
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
		if raw, err := socket.SyscallConn(); err == nil { // else it is read as one without a socket
			c.raw = raw
		}
	}
	return c, nil
}

// intakeConn is a connection that is counted.
type intakeConn struct {
	net.Conn
	of   *intake
	raw  syscall.RawConn // nil: it has no socket
	peer netip.Addr      // the zero address of a unix socket
	in   frames          // of who reads
	rest []byte          // was read, and comes next
	out  frames          // of who writes

	// Guarded by of.mu.
	streams map[uint32]*intakeStream
	held    int64     // by all of them
	since   time.Time // when it got further, if it has more than a little
	waits   bool      // it is not read, so that it can get no further
	ended   bool      // it was closed, and counts for nothing
}

// intakeStream is a stream that is open, or has a handler. Guarded by of.mu of its connection.
type intakeStream struct {
	conn    *intakeConn
	id      uint32
	held    int64 // has come, and was not received
	handled bool  // a handler has it
	closed  bool  // nothing comes any more
}

// connAddr is the address of a client, with its connection.
type connAddr struct {
	net.Addr
	conn *intakeConn
}

// RemoteAddr is what gRPC gives to the handlers.
func (c *intakeConn) RemoteAddr() net.Addr { return connAddr{c.Conn.RemoteAddr(), c} }

// plainAddr is an address without its connection.
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

// ReadOnReady is Read with a buffer that is taken when there is something to read: gRPC, which looks for this method,
// keeps 32 KiB for each connection without it, most of which are idle.
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

// first is how much of what was read comes first: up to the end of the head of a request, so that the stream that gRPC
// opens next is the one of this head. The rest stays.
func (c *intakeConn) first(p []byte) int {
	n := c.of.came(c, p)
	if n < len(p) {
		c.rest = bytes.Clone(p[n:])
	}
	return n
}

// next puts what comes next of the rest into p.
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

// Close gives back what the connection holds.
func (c *intakeConn) Close() error {
	c.of.release(c)
	return c.Conn.Close()
}
