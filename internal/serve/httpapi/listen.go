package httpapi

import "github.com/mesh-agent/mesh-agent/internal/serve/transport"

// Listen opens a TCP address and a unix socket; either may be empty for none. When socketOptional is set and the
// socket cannot be created, it logs a warning and continues without. See [transport.Listen] for the rest, and for the
// error. [Server.Serve] closes the listeners; without Serve, Close does.
func (s *Server) Listen(address, socket string, socketOptional bool) error {
	l, err := transport.Listen(transport.Options{
		Address: address, Socket: socket, SocketOptional: socketOptional, TLS: s.tls, Connections: s.connections, Log: s.log,
	})
	if err == nil {
		s.listeners = l
	}
	return err
}

// Address is the TCP address in use, with the chosen port when port 0 was requested; empty without one.
func (s *Server) Address() string { return s.listeners.Address }

// Socket is the path of the unix socket in use; empty without one.
func (s *Server) Socket() string { return s.listeners.Socket }

// Close closes the listeners of Listen and ends every watch. It may be called twice, and after Serve.
func (s *Server) Close() {
	s.stop()
	s.listeners.Close()
	s.streams.Close()
}
