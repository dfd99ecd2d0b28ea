package xdsserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// gRPC gives a request to the server once all of it is there. Until then it keeps what has come, of each stream up to
// the longest request. So what all connections together have sent of requests that are not received yet is bounded:
// beyond that, connections that have more than a little of it are read no further until others are through. Who does
// not get through is ended when that holds up others: a client that sends half a request, and waits, or one with so much
// more than others that they have no room.
const (
	intakeShare  = 4        // of what clients may make the server keep, for requests of all connections together
	littleIntake = 16 << 10 // of one connection, which is read in any case
	intakeWait   = time.Second
)

var errNoIntake = errors.New("too much of requests has come that are not complete")

// intake counts the bytes of requests that have come and were not received yet. It is a [stats.Handler] of the server
// whose listeners it wraps.
type intake struct {
	most int64

	mu    sync.Mutex
	sum   int64
	large map[*intakeConn]struct{} // those with more than a little
	made  time.Time                // when connections were ended for room: those who wait have it now
	less  chan struct{}            // closed and replaced when there is less
}

func newIntake(memory int64) *intake {
	return &intake{most: memory / intakeShare, large: make(map[*intakeConn]struct{}), less: make(chan struct{})}
}

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
	c := &intakeConn{Conn: conn, of: l.of, peer: transport.PeerOf(conn.RemoteAddr()), frames: frames{left: len(preface)}}
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
	of     *intake
	raw    syscall.RawConn // nil: it has no socket
	peer   netip.Addr      // the zero address of a unix socket
	frames frames

	// Guarded by of.mu.
	held    int64
	streams int
	since   time.Time // when it got further, if it has more than a little
	waits   bool      // it is not read, so that it can get no further
	ended   bool      // it was closed, and counts for nothing
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
	n, err := c.Conn.Read(p)
	c.of.add(c, c.frames.count(p[:n]))
	return n, err
}

// ReadOnReady is Read with a buffer that is taken when there is something to read: gRPC, which looks for this method,
// keeps 32 KiB for each connection without it, most of which are idle.
func (c *intakeConn) ReadOnReady(size int, buffers mem.BufferPool) (*[]byte, int, error) {
	if !c.of.wait(c) {
		return nil, 0, errNoIntake
	}
	buf, n, err := c.readOnReady(size, buffers)
	if buf != nil {
		c.of.add(c, c.frames.count((*buf)[:n]))
	}
	return buf, n, err
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

// Close gives back what the connection holds.
func (c *intakeConn) Close() error {
	c.of.release(c)
	return c.Conn.Close()
}

// wait returns when a connection may be read; false when it is to be ended.
func (i *intake) wait(c *intakeConn) bool {
	for {
		i.mu.Lock()
		free, ended, less := i.sum <= i.most || c.held <= littleIntake, c.ended, i.less
		c.waits = !free && !ended
		i.mu.Unlock()
		if free || ended {
			return !ended
		}
		timer := time.NewTimer(intakeWait)
		select {
		case <-less:
		case <-timer.C:
			i.makeRoom()
		}
		timer.Stop()
	}
}

// makeRoom ends connections that hold up others. Who reads one, or waits to, finds that out.
func (i *intake) makeRoom() {
	i.mu.Lock()
	var over []*intakeConn
	if now := time.Now(); i.sum > i.most && now.Sub(i.made) >= intakeWait {
		over, i.made = i.holders(now), now
	}
	for _, c := range over {
		i.change(c, -c.held)
		c.ended = true
	}
	i.mu.Unlock()
	for _, c := range over {
		_ = c.Conn.Close()
	}
}

// holders are the connections that hold up others: those that are read, and get no further; without any, one of those
// that wait for each other.
func (i *intake) holders(now time.Time) (all []*intakeConn) {
	for c := range i.large {
		if !c.waits && now.Sub(c.since) >= intakeWait {
			all = append(all, c)
		}
	}
	if all == nil {
		all = append(all, i.largest())
	}
	return all
}

// largest is the connection with most of the peer with most.
func (i *intake) largest() (most *intakeConn) {
	of := make(map[netip.Addr]int64)
	for c := range i.large {
		of[c.peer] += c.held
	}
	for c := range i.large {
		if most == nil || cmp.Or(cmp.Compare(of[c.peer], of[most.peer]), cmp.Compare(c.held, most.held)) > 0 {
			most = c
		}
	}
	return most
}

// add counts what has come, or, below zero, what was received: not more than there is.
func (i *intake) add(c *intakeConn, n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change(c, max(n, -c.held))
}

// release is for a connection without a request that is not received.
func (i *intake) release(c *intakeConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change(c, -c.held)
}

func (i *intake) change(c *intakeConn, by int64) {
	if c.ended {
		return
	}
	c.held += by
	i.sum += by
	if delete(i.large, c); c.held > littleIntake {
		c.since, i.large[c] = time.Now(), struct{}{}
	}
	if by < 0 {
		close(i.less)
		i.less = make(chan struct{})
	}
}

type intakeKey struct{}

// TagConn, and all below, implement [stats.Handler].
func (i *intake) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if a, is := info.RemoteAddr.(connAddr); is {
		return context.WithValue(ctx, intakeKey{}, a.conn)
	}
	return ctx
}

// HandleConn does nothing.
func (i *intake) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC does nothing.
func (i *intake) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes requests that were received, and streams. What is left of a stream that ends counts until all streams
// of its connection have ended.
func (i *intake) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c, is := ctx.Value(intakeKey{}).(*intakeConn)
	if !is {
		return
	}
	switch s := s.(type) {
	case *stats.InPayload:
		i.add(c, -int64(s.WireLength))
	case *stats.Begin:
		i.count(c, 1)
	case *stats.End:
		i.count(c, -1)
	}
}

func (i *intake) count(c *intakeConn, by int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.streams += by; c.streams == 0 {
		i.change(c, -c.held)
	}
}

// preface is what a client sends first (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frames finds the contents of requests in what a client sends: that of DATA frames (RFC 9113, section 4.1).
type frames struct {
	left int  // of the preface, or of the frame
	data bool // whether it is one of data
	head [9]byte
	n    int // how much of the next head is there
}

// count is how many bytes of data there are in what has come.
func (f *frames) count(p []byte) (data int64) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, len(p))
			if f.data {
				data += int64(n)
			}
			f.left -= n
			p = p[n:]
			continue
		}
		n := copy(f.head[f.n:], p)
		p = p[n:]
		if f.n += n; f.n == len(f.head) {
			f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			f.data = f.head[3] == 0
			f.n = 0
		}
	}
	return data
}
