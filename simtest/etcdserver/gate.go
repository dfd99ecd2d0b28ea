package etcdserver

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/ports"
)

// Gate is an address that stays the same while the servers behind it change: it passes connections on to one server,
// can reset them all, refuse new ones, or go silent.
//
// All methods may be called by several goroutines. Its own goroutines end with Close, which waits for them.
type Gate struct {
	wg sync.WaitGroup

	mu       sync.Mutex      // guards everything below
	addr     string          // stays the same once it is known
	reserved *ports.Reserved // so that the port is not given to another listener while it is shut; nil before the first Open
	listener net.Listener    // nil while shut
	backend  string
	conns    map[*net.TCPConn]struct{} // both ends of each connection
	thawed   chan struct{}             // closed at the thaw; nil unless frozen
}

// NewGate returns a gate for an address on loopback, "127.0.0.1:0" for a free port. It is shut.
func NewGate(addr string) *Gate { return &Gate{addr: addr, conns: map[*net.TCPConn]struct{}{}} }

// Open passes connections on to the server at this address from now on. Open connections are reset. A frozen gate
// thaws.
func (g *Gate) Open(backend string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reset()
	g.backend = backend
	if g.listener != nil {
		return nil
	}
	if g.reserved == nil {
		r, err := ports.Reserve(g.addr)
		if err != nil {
			return err
		}
		g.reserved, g.addr = r, r.Addr()
	}
	var l net.Listener
	err := whileInUse(func() (err error) {
		l, err = net.Listen("tcp", g.addr)
		return err
	})
	if err != nil {
		return err
	}
	g.listener = l
	g.wg.Go(func() { g.accept(l) })
	return nil
}

// whileInUse tries again while the error is that the address is in use: a child process that is being started holds the
// earlier listener until it executes its program.
func whileInUse(try func() error) error {
	for deadline := time.Now().Add(addrInUseTimeout); ; {
		err := try()
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// Shut resets all connections and closes the port, like the end of the server's process.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	g.reset()
}

// Freeze keeps every connection open but forwards no data until Thaw, as if the server's process were stopped. New
// connections are accepted, but get no answer.
func (g *Gate) Freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.thawed != nil {
		return
	}
	g.thawed = make(chan struct{})
	for c := range g.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails only on a connection that has ended
	}
}

// Thaw forwards the data that Freeze held back, and everything after it.
func (g *Gate) Thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.thaw()
}

// thaw ends a freeze; mu is held.
func (g *Gate) thaw() {
	if g.thawed == nil {
		return
	}
	for c := range g.conns {
		_ = c.SetReadDeadline(time.Time{})
	}
	close(g.thawed)
	g.thawed = nil
}

// Frozen reports whether the gate is silent.
func (g *Gate) Frozen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.thawed != nil
}

// Addr returns the address for clients, once the gate has been open.
func (g *Gate) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addr
}

// Close shuts the gate and waits until its goroutines have ended.
func (g *Gate) Close() {
	g.Shut()
	g.wg.Wait()
	if g.reserved != nil {
		g.reserved.Release()
	}
}

// reset resets all connections; mu is held.
func (g *Gate) reset() {
	for c := range g.conns { // before the first one is closed: its end also ends the other side
		_ = c.SetLinger(0)
	}
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
	g.thaw() // a pump that waits for the thaw finds its connection closed
}

func (g *Gate) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, too many open files
			<-time.After(50 * time.Millisecond)
			continue
		}
		g.wg.Go(func() { g.pass(l, c.(*net.TCPConn)) })
	}
}

// pass connects a client with the server until either side ends.
func (g *Gate) pass(l net.Listener, client *net.TCPConn) {
	backend, ok := g.keep(l, client)
	defer g.end(client)
	if !ok {
		return
	}
	c, err := net.DialTimeout("tcp", backend, addrInUseTimeout)
	if err != nil {
		return
	}
	server := c.(*net.TCPConn)
	defer g.end(server)
	if now, ok := g.keep(l, server); !ok || now != backend {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { g.pump(server, client) })
	g.pump(client, server)
	wg.Wait()
}

// keep registers a connection, unless the gate was shut since the connection was accepted, and returns the server's
// address.
func (g *Gate) keep(l net.Listener, c *net.TCPConn) (backend string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != l {
		return "", false
	}
	g.conns[c] = struct{}{}
	if g.thawed != nil {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
	return g.backend, true
}

// end resets a connection, unless it has ended regularly.
func (g *Gate) end(c *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
	_ = c.SetLinger(0)
	_ = c.Close()
}

// pump copies from one connection to the other until one ends, and then ends both. Reading
// stops while the gate is frozen; data that was already read is always forwarded.
func (g *Gate) pump(to, from *net.TCPConn) {
	for {
		_, err := io.Copy(to, from)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		g.mu.Lock()
		thawed := g.thawed
		g.mu.Unlock()
		if thawed != nil {
			<-thawed
		}
	}
	_ = to.Close()
	_ = from.Close()
}
