package agents

import (
	"errors"
	"net"
	"sync"
)

// servers are the servers of one kind of the agents of a cluster, one after another, which have pipes instead of sockets.
type servers struct {
	mu       sync.Mutex
	listener *pipes // of the running agent; nil: none runs
}

// dial connects with the server. It fails while none runs.
func (s *servers) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil, errors.New("connection refused")
	}
	return s.listener.dial()
}

// listen returns the listener of the next server, and close ends it.
func (s *servers) listen() *pipes {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = &pipes{accepted: make(chan net.Conn), closed: make(chan struct{}), open: make(map[net.Conn]struct{})}
	return s.listener
}

func (s *servers) close() error {
	s.mu.Lock()
	l := s.listener
	s.listener = nil
	s.mu.Unlock()
	return l.Close()
}

// pipes is a listener whose connections are pipes. They end with it, also those that a handler has taken over.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (p *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[conn] = struct{}{}
		return &end{conn, p}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.Close() // a pipe does not fail
	}
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// end is the end of the server.
type end struct {
	net.Conn
	of *pipes
}

func (e *end) Close() error {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	delete(e.of.open, e.Conn)
	return e.Conn.Close()
}
