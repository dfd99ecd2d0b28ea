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

const socketMode fs.FileMode = 0o660 // lets the owner's group in, too

const probeTimeout = time.Second // for another agent to accept a connection

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

// Options say how to listen.
type Options struct {
	Address, Socket string   // either may be empty for none
	SocketOptional  bool     // go on without a socket that cannot be created
	TLS             *TLS     // nil: TCP is plain
	Protocols       []string // that are offered with TLS; none: HTTP/1.1
	Connections     *Gate    // those over TCP
	Public          bool     // what is served is for everybody: no warning about who can read it
	Flag            string   // that gives both, for errors; empty: --listen and --socket
	Log             *slog.Logger
}

// Listen opens a TCP address and a unix socket. The error is a [*ListenError]: [ErrSocketInUse] or
// [ErrAddressInUse] when somebody else is there. A dead socket file, which an agent left that did
// not end well, is replaced; a file that is no socket is never touched. It warns about an address
// that others than this machine can reach, since nobody is asked who they are.
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
	Address string         // the TCP address in use, with the port that was chosen when the wanted one was 0; empty without one
	Socket  string         // the path of the unix socket in use; empty without one
}

// Serve lets the group serve HTTP on each of them, until the server is closed.
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

// Close closes them. It may be called twice.
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
	if errors.Is(err, syscall.EADDRINUSE) { // taken since removeDead looked
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
	// Not twice: another agent's file may have got the number of ours.
	return &unixListener{l, sync.OnceValue(func() error {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, file) {
			_ = os.Remove(path) // what stays behind is a dead file, which the next agent replaces
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
		return ErrSocketInUse // its queue of connections is full
	}
	return err
}
