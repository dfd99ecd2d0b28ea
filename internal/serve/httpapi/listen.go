package httpapi

import "github.com/mesh-agent/mesh-agent/internal/serve/transport"

// Listen opens a TCP address and a unix socket; either may be empty for none. When socketOptional
// is set and the socket cannot be created, it warns and goes on without. [transport.Listen] says
// the rest, and what the error is. [Server.Serve] closes what was opened; without it, Close does.
func (s *Server) Listen(address, socket string, socketOptional bool) error {
	l, err := transport.Listen(transport.Options{
		Address: address, Socket: socket, SocketOptional: socketOptional, TLS: s.tls, Connections: s.connections, Log: s.log,
	})
	if err == nil {
		s.listeners = l
	}
	return err
}

// Address is the TCP address in use, with the port that was chosen when the
// wanted one was 0; empty without one.
func (s *Server) Address() string { return s.listeners.Address }

// Socket is the path of the unix socket in use; empty without one.
func (s *Server) Socket() string { return s.listeners.Socket }

// Close closes what Listen opened and ends every watch. It may be called twice, and after Serve.
func (s *Server) Close() {
	s.stop()
	s.listeners.Close()
	s.streams.Close()
}
