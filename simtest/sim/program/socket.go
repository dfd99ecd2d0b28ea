package program

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

	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// SocketVariable is the environment variable that names the control socket. It is
// set for the command that the simulator runs.
const SocketVariable = "MESH_SIM_SOCKET"

// The control socket of a simulator is in its temporary directory by default, so that it can be found.
const socketName = "ctl.sock"

// probeTimeout bounds the check whether a process listens on a socket.
const probeTimeout = time.Second

// NoSimulatorError means that no simulator could be asked.
type NoSimulatorError struct{ Err error }

func (e *NoSimulatorError) Error() string { return e.Err.Error() }
func (e *NoSimulatorError) Unwrap() error { return e.Err }

// FindSocket returns the control socket of the one running simulator of this user. A *NoSimulatorError means that there
// is none, or lists several.
func FindSocket() (string, error) {
	candidates, err := filepath.Glob(filepath.Join(os.TempDir(), sim.TempPrefix+"*", socketName))
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

// ours reports whether the directory of a socket belongs to this user: any user can create one in the system's
// temporary directory.
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
func (m mesh) controlSocket(asked string) (string, error) {
	if asked == "" {
		return filepath.Join(m.Temp(), socketName), nil
	}
	path, err := filepath.Abs(asked)
	if err != nil {
		return "", &sim.DirectoryError{Err: fmt.Errorf("control socket %s: %w", asked, err)}
	}
	return path, nil
}

// listenControl listens on a unix socket that only its owner may use. A socket
// without a listener is replaced. Closing removes it.
func listenControl(path string) (net.Listener, error) {
	err := freeSocket(path)
	if err == nil {
		var l net.Listener
		if l, err = listenPrivately(path); err == nil {
			return l, nil
		}
	}
	return nil, &sim.DirectoryError{Err: fmt.Errorf("control socket %s: %w", path, err)}
}

// listenPrivately creates the socket in a directory that only the owner can enter, and then moves it: no other user may
// connect before the mode is set.
func listenPrivately(path string) (net.Listener, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }()
	made := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: made})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socketListener{l, path}, nil
}

// freeSocket checks that a path may be used for a socket.
func freeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case len(path)+len("/.0123456789") > len(syscall.RawSockaddrUnix{}.Path): // with room for the path where it is created
		return errors.New("the path is too long for a socket: choose a shorter one with --ctl-socket")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something else of that name: remove it, or choose another with --ctl-socket")
	case listens(path):
		return errors.New("another simulator uses it: choose another with --ctl-socket")
	}
	return nil
}

// socketListener removes its socket, which was moved after its creation.
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
