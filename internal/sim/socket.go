package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// SocketVariable is the environment variable that names the control socket. It is
// set for the command that the simulator runs.
const SocketVariable = "MESH_SIM_SOCKET"

// The control socket of a simulator is in its temporary directory, unless asked
// otherwise, so that it can be found.
const (
	tempPrefix = "mesh-sim-"
	socketName = "ctl.sock"
)

// probeTimeout bounds the look whether somebody listens on a socket.
const probeTimeout = time.Second

// NoSimulatorError says that no simulator could be asked.
type NoSimulatorError struct{ Err error }

func (e *NoSimulatorError) Error() string { return e.Err.Error() }
func (e *NoSimulatorError) Unwrap() error { return e.Err }

// FindSocket returns the control socket of the one simulator of this user that
// runs. A *NoSimulatorError says that there is none, or which ones there are.
func FindSocket() (string, error) {
	candidates, err := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*", socketName))
	if err != nil {
		return "", fmt.Errorf("look for a simulator: %w", err)
	}
	live := slices.DeleteFunc(candidates, func(path string) bool { return !ours(path) || !listens(path) })
	switch len(live) {
	case 0:
		return "", &NoSimulatorError{fmt.Errorf("no simulator runs in %s: start mesh-sim, or name its control socket with --socket or %s", os.TempDir(), SocketVariable)}
	case 1:
		return live[0], nil
	}
	return "", &NoSimulatorError{fmt.Errorf("several simulators run: choose one with --socket or %s: %s", SocketVariable, strings.Join(live, ", "))}
}

// ours tells whether the directory of a socket is this user's: anybody can make
// one in the system's temporary directory.
func ours(path string) bool {
	info, err := os.Lstat(filepath.Dir(path))
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

func listens(path string) bool {
	c, err := net.DialTimeout("unix", path, probeTimeout)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// controlSocket is the absolute path of the control socket.
func (m *Mesh) controlSocket(asked string) (string, error) {
	if asked == "" {
		return filepath.Join(m.temp, socketName), nil
	}
	path, err := filepath.Abs(asked)
	if err != nil {
		return "", &DirectoryError{fmt.Errorf("control socket %s: %w", asked, err)}
	}
	return path, nil
}

// listenControl listens on a unix socket that only its owner may use. A socket
// that nobody listens on any more is replaced. Closing removes it.
func listenControl(path string) (net.Listener, error) {
	if err := freeSocket(path); err != nil {
		return nil, &DirectoryError{err}
	}
	// Nobody else may connect before the mode is set: it is made where only the
	// owner comes, and then moved.
	private, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, &DirectoryError{fmt.Errorf("control socket %s: %w", path, err)}
	}
	defer func() { _ = os.RemoveAll(private) }()
	aside := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: aside})
	if err != nil {
		return nil, &DirectoryError{fmt.Errorf("control socket %s: %w", path, err)}
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(aside, 0o600)
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return nil, errors.Join(&DirectoryError{fmt.Errorf("control socket %s: %w", path, err)}, l.Close())
	}
	return &socketListener{l, path}, nil
}

// freeSocket checks that a path may be used for a socket.
func freeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case len(path)+len("/.0123456789") > len(syscall.RawSockaddrUnix{}.Path): // with room for where it is made
		return fmt.Errorf("control socket %s: the path is too long for a socket: choose a shorter one with --ctl-socket", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("control socket %s: there is something else of that name: remove it, or choose another with --ctl-socket", path)
	case listens(path):
		return fmt.Errorf("control socket %s: another simulator uses it: choose another with --ctl-socket", path)
	}
	return nil
}

// socketListener removes its socket, which was moved since it was made.
type socketListener struct {
	*net.UnixListener
	path string
}

func (l *socketListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		err = os.Remove(l.path)
	}
	return err
}
