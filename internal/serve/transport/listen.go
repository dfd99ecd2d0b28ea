package transport

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const socketMode fs.FileMode = 0o660 // the owner's group has access, too

const probeTimeout = time.Second // time for another agent to accept a connection

// The reasons why a server cannot listen that callers distinguish.
var (
	// ErrSocketInUse: a running agent listens on the socket.
	ErrSocketInUse = errors.New("another agent listens on it")
	// ErrAddressInUse: a running process listens on the address.
	ErrAddressInUse = errors.New("another process listens on it")
)

// ListenError is the place where a server cannot listen, and the reason.
type ListenError struct {
	Place string // an address, or the path of a socket
	Err   error
}

func (e *ListenError) Error() string { return fmt.Sprintf("cannot listen on %s: %v", e.Place, e.Err) }

// Unwrap returns the reason.
func (e *ListenError) Unwrap() error { return e.Err }

// Options are the options of a listener.
type Options struct {
	Address, Socket string   // each may be empty for none
	SocketOptional  bool     // continue without a socket that cannot be created
	TLS             *TLS     // nil: TCP is plain
	Protocols       []string // offered with TLS; none: HTTP/1.1
	Connections     *Gate    // those over TCP
	Public          bool     // the answers are public: no warning about who can read them
	Flag            string   // the flag of both, for errors; empty: --listen and --socket
	Log             *slog.Logger
}

// Listen opens a TCP address and a unix socket. The error is a [*ListenError]; it is [ErrSocketInUse] or
// [ErrAddressInUse] when another process listens there. It replaces a dead socket file, which an agent leaves when it
// is killed; it never touches a file that is not a socket. It logs a warning about an address that other machines can
// reach, because clients are not authenticated.
func Listen(o Options) (*Listeners, error) {
	if o.Address == "" && o.Socket == "" {
		return nil, &ListenError{"nothing", errors.New("neither an address nor a socket was given")}
	}
	l := new(Listeners)
	if o.Address != "" {
		tcp, err := o.listenTCP()
		if err != nil {
			return nil, &ListenError{o.Address, err}
		}
		l.All, l.Address = append(l.All, tcp), tcp.Addr().String()
	}
	if o.Socket != "" {
		unix, err := listenUnix(o.Socket, cmp.Or(o.Flag, "--socket"))
		switch {
		case err == nil:
			l.All, l.Socket = append(l.All, unix), o.Socket
		case o.SocketOptional && !errors.Is(err, ErrSocketInUse):
			o.Log.Warn("Cannot listen on the unix socket", "socket", o.Socket, "error", err)
		default:
			l.Close()
			return nil, &ListenError{o.Socket, err}
		}
	}
	var at []any
	if l.Address != "" {
		at = append(at, "address", l.Address)
	}
	if l.Socket != "" {
		at = append(at, "socket", l.Socket)
	}
	o.Log.Info("Listening", at...)
	return l, nil
}

// Listeners are open sockets. The zero value has none.
type Listeners struct {
	All     []net.Listener // to accept connections from
	Address string         // the TCP address in use, with the chosen port when port 0 was requested; empty without one
	Socket  string         // the path of the unix socket in use; empty without one
}

// Serve runs an HTTP server on each listener in the group, until the server is closed.
func (l *Listeners) Serve(g *errgroup.Group, server *http.Server) {
	for _, one := range l.All {
		g.Go(func() error {
			if err := server.Serve(one); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
}

// Close closes all listeners. It may be called twice.
func (l *Listeners) Close() {
	for _, one := range l.All {
		_ = one.Close() // a second close is the only way to fail
	}
}

func (o Options) listenTCP() (net.Listener, error) {
	l, err := net.Listen("tcp", o.Address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: stop it, or choose another address with %s", ErrAddressInUse, cmp.Or(o.Flag, "--listen"))
	case err != nil:
		return nil, cause(err)
	}
	l = &boundedListener{l, newLane(o.Connections), newSpareLane()}
	if o.TLS != nil {
		if len(o.Protocols) == 0 {
			o.Protocols = []string{"http/1.1"}
		}
		config, err := o.TLS.listenConfig(o.Protocols)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		l = tls.NewListener(l, config)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !o.Public && (o.TLS == nil || o.TLS.files.ClientCA == "") {
		o.Log.Warn("Listening on an address that is not a loopback one: "+
			"all machines that reach it can read everything, without authentication", "address", tcp.String())
	}
	return l, nil
}

// cause removes the part that a [ListenError] has already.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// unixListener removes its file when it is closed, unless another agent has replaced the file.
type unixListener struct {
	net.Listener
	close func() error
}

func (u *unixListener) Close() error { return u.close() }

func listenUnix(path, flag string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := removeDead(path, flag); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) { // created after removeDead
		return nil, ErrSocketInUse
	} else if err != nil {
		return nil, cause(err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		_ = os.Remove(path)
		return nil, err
	}
	file, err := os.Lstat(path)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	// Only once: another agent's file may have received the inode number of this one.
	return &unixListener{l, sync.OnceValue(func() error {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, file) {
			_ = os.Remove(path) // a file that remains is a dead socket, which the next agent replaces
		}
		return l.Close()
	})}, nil
}

func removeDead(path, flag string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("the file there is not a socket: remove it, or choose another path with %s", flag)
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
		return ErrSocketInUse // the queue of connections of the other agent is full
	}
	return err
}
