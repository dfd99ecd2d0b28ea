package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Where an agent listens, and a client looks for it.
const (
	DefaultSocket = "/var/run/mesh-agent/mesh-agent.sock"
	DefaultListen = "127.0.0.1:9979"
)

// socketMode lets the owner's group in, too.
const socketMode fs.FileMode = 0o660

// probeTimeout is how long another agent may take to accept a connection.
const probeTimeout = time.Second

// Why a server cannot listen, where a caller tells it apart.
var (
	// ErrSocketInUse: an agent that runs listens on the socket.
	ErrSocketInUse = errors.New("another agent listens on it")
	// ErrAddressInUse: a process that runs listens on the address.
	ErrAddressInUse = errors.New("another process listens on it")
)

// ListenError tells where a server cannot listen, and why.
type ListenError struct {
	Place string // an address, or the path of a socket
	Err   error
}

func (e *ListenError) Error() string { return fmt.Sprintf("cannot listen on %s: %v", e.Place, e.Err) }

// Unwrap returns the reason.
func (e *ListenError) Unwrap() error { return e.Err }

// Listen opens a TCP address and a unix socket; either may be empty for none.
// The error is a [*ListenError]: [ErrSocketInUse] or [ErrAddressInUse] when
// somebody else is there. A dead socket file, which an agent left that did not
// end well, is replaced; a file that is no socket is never touched. When
// socketOptional is set and the socket cannot be created, Listen warns and goes
// on without it. It also warns about an address that others than this machine
// can reach, since nobody is asked who they are.
//
// [Server.Serve] closes what was opened; without it, Close does.
func (s *Server) Listen(address, socket string, socketOptional bool) error {
	if address == "" && socket == "" {
		return &ListenError{"nothing", errors.New("neither an address nor a socket was given")}
	}
	l := new(listeners)
	if address != "" {
		tcp, err := listenTCP(address)
		if err != nil {
			return &ListenError{address, err}
		}
		l.tcp = &boundedListener{tcp, s.connections, newGate(Limit{All: spareConnections})}
		if s.tls != nil {
			config, err := s.tls.listenConfig()
			if err != nil {
				l.close()
				return &ListenError{address, err}
			}
			l.tcp = tls.NewListener(l.tcp, config)
		}
		s.warnOfStrangers(tcp.Addr())
	}
	if socket != "" {
		unix, err := listenUnix(socket)
		switch {
		case err == nil:
			l.unix = unix
		case socketOptional && !errors.Is(err, ErrSocketInUse):
			s.log.Warn("No unix socket", "socket", socket, "error", err)
		default:
			l.close()
			return &ListenError{socket, err}
		}
	}
	s.log.Info("Listening", "address", l.address(), "socket", l.socket())
	s.listeners = l
	return nil
}

// Address is the TCP address in use, with the port that was chosen when the
// wanted one was 0; empty without one.
func (s *Server) Address() string { return s.listeners.address() }

// Socket is the path of the unix socket in use; empty without one.
func (s *Server) Socket() string { return s.listeners.socket() }

// Close closes what Listen opened and ends every watch. It may be called twice, and
// after Serve.
func (s *Server) Close() {
	s.stop()
	s.listeners.close()
	s.streams.close()
}

func (s *Server) warnOfStrangers(a net.Addr) {
	if s.tls != nil && s.tls.files.ClientCA != "" {
		return
	}
	if tcp, ok := a.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.log.Warn("Listening on an address that is not a loopback one: "+
			"everyone who reaches it can read everything, nobody is authenticated", "address", a.String())
	}
}

// listeners are open sockets. The zero value has none.
type listeners struct {
	tcp  net.Listener  // nil: none
	unix *unixListener // nil: none
}

func (l *listeners) address() string {
	if l.tcp == nil {
		return ""
	}
	return l.tcp.Addr().String()
}

func (l *listeners) socket() string {
	if l.unix == nil {
		return ""
	}
	return l.unix.path
}

func (l *listeners) close() {
	for _, one := range l.all() {
		_ = one.Close() // a second close is the only way to fail
	}
}

func (l *listeners) all() []net.Listener {
	var all []net.Listener
	if l.tcp != nil {
		all = append(all, l.tcp)
	}
	if l.unix != nil {
		all = append(all, l.unix)
	}
	return all
}

func listenTCP(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: stop it, or choose another address with --listen", ErrAddressInUse)
	}
	return l, cause(err)
}

// cause leaves out what a [ListenError] says already.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// unixListener removes its file when it is closed, and only its own: another
// agent may have replaced it.
type unixListener struct {
	net.Listener
	path string
	file fs.FileInfo
	once sync.Once
	err  error
}

func (u *unixListener) Close() error {
	// Not twice: another agent's file may have got the number of ours.
	u.once.Do(func() { u.err = u.close() })
	return u.err
}

func (u *unixListener) close() error {
	if now, err := os.Lstat(u.path); err == nil && os.SameFile(now, u.file) {
		_ = os.Remove(u.path) // what stays behind is a dead file, which the next agent replaces
	}
	return u.Listener.Close()
}

func listenUnix(path string) (*unixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := removeDead(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) { // taken since removeDead looked
		return nil, ErrSocketInUse
	} else if err != nil {
		return nil, cause(err)
	}
	l.SetUnlinkOnClose(false)
	u := &unixListener{Listener: l, path: path}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		_ = os.Remove(path)
		return nil, err
	}
	if u.file, err = os.Lstat(path); err != nil {
		_ = l.Close()
		return nil, err
	}
	return u, nil
}

// removeDead removes a socket file that nobody listens on.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("the file there is not a socket: remove it, or choose another path with --socket")
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case err == nil:
		_ = conn.Close()
		return ErrSocketInUse
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.EAGAIN), os.IsTimeout(err):
		return ErrSocketInUse // its queue of connections is full
	}
	return err
}
