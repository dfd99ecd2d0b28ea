package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// listening returns a fixture that listens, and its log. It is closed with the test.
func listening(t *testing.T, address, socket string, optional bool) (*fixture, string, error) {
	t.Helper()
	f := newFixture(t)
	var log bytes.Buffer
	f.log = slog.New(slog.NewTextHandler(&log, nil))
	err := f.Listen(address, socket, optional)
	t.Cleanup(f.Close)
	return f, log.String(), err
}

// deadSocket leaves a socket file without a listener.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestSocketIsMadeWithItsFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "agent.sock")
	f, _, err := listening(t, "", path, false)
	must(t, err)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if f.Socket() != path || f.Address() != "" {
		t.Errorf("listens on %q and %q", f.Socket(), f.Address())
	}
	f.Close()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestDeadSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	deadSocket(t, path)
	if _, _, err := listening(t, "", path, false); err != nil {
		t.Error(err)
	}
}

func TestLiveSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	if _, _, err := listening(t, "", path, false); err != nil {
		t.Fatal(err)
	}
	for _, optional := range []bool{false, true} {
		_, _, err := listening(t, "127.0.0.1:0", path, optional)
		if !errors.Is(err, transport.ErrSocketInUse) {
			t.Errorf("optional %v: %v", optional, err)
		}
		if e, ok := errors.AsType[*transport.ListenError](err); !ok || e.Place != path {
			t.Errorf("optional %v: %v", optional, err)
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the first agent is gone: %v", err)
	}
	conn.Close()
}

func TestFileThatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	must(t, os.WriteFile(path, []byte("precious"), 0o600))
	if _, _, err := listening(t, "", path, false); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("listens instead of a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file changed: %q %v", text, err)
	}
}

func TestSocketThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	path := filepath.Join(file, "agent.sock") // below a file: not even root can
	if _, _, err := listening(t, "127.0.0.1:0", path, false); err == nil {
		t.Error("no error")
	}
	f, log, err := listening(t, "127.0.0.1:0", path, true)
	if err != nil || f.Socket() != "" || f.Address() == "" {
		t.Errorf("does not listen on the address alone: %q %q %v", f.Socket(), f.Address(), err)
	}
	if !strings.Contains(log, "level=WARN") || !strings.Contains(log, path) {
		t.Errorf("no warning: %s", log)
	}
}

func TestCloseLeavesTheNextAgentsSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	first, _, err := listening(t, "", path, false)
	must(t, err)
	if err := os.Remove(path); err != nil { // as an administrator might
		t.Fatal(err)
	}
	if _, _, err := listening(t, "", path, false); err != nil {
		t.Fatal(err)
	}
	first.Close()
	first.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the next agent's socket was removed: %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	first, _, err := listening(t, "127.0.0.1:0", "", false)
	must(t, err)
	path := filepath.Join(t.TempDir(), "agent.sock")
	_, _, err = listening(t, first.Address(), path, true)
	if !errors.Is(err, transport.ErrAddressInUse) || !strings.Contains(err.Error(), first.Address()) {
		t.Errorf("listens twice: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a socket was left behind: %v", err)
	}
}

func TestAddressesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nonsense", "127.0.0.1:99999", "203.0.113.1:0"} {
		_, _, err := listening(t, address, "", false)
		if e, ok := errors.AsType[*transport.ListenError](err); !ok || e.Place != address {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, _, err := listening(t, "", "", true); err == nil {
		t.Error("listens on nothing")
	}
}

func TestWarningForUnknownClients(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true} {
		_, log, err := listening(t, address, "", false)
		must(t, err)
		if got := strings.Contains(log, "level=WARN"); got != want {
			t.Errorf("%s: %s", address, log)
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	f, _, err := listening(t, "127.0.0.1:0", path, false)
	must(t, err)
	started, finish := make(chan struct{}), make(chan struct{})
	f.mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		close(started)
		select {
		case <-finish:
		case <-r.Context().Done():
			t.Error("a request under way was cancelled by the stop")
		}
		_, _ = w.Write([]byte("done"))
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx) }()

	unix := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	tcp := &http.Transport{}
	defer unix.CloseIdleConnections()
	defer tcp.CloseIdleConnections()
	for name, client := range map[string]*http.Client{"tcp": {Transport: tcp}, "unix": {Transport: unix}} {
		resp, err := client.Get("http://" + f.Address() + "/healthz")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %v", name, resp, err)
		}
		resp.Body.Close()
	}

	slow := make(chan error, 1)
	go func() {
		resp, err := (&http.Client{Transport: tcp}).Get("http://" + f.Address() + "/slow")
		if err == nil {
			resp.Body.Close()
		}
		slow <- err
	}()
	<-started
	stop()
	waittest.Until(t, "the socket to go", func() bool { _, err := os.Stat(path); return err != nil })
	close(finish)
	if err := <-slow; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", f.Address()); err == nil {
		t.Error("still listens")
	}
}

// TestServeDoesNotWaitForEver: a request that does not end delays the stop by stopTimeout.
func TestServeDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	f, _, err := listening(t, "127.0.0.1:0", "", false)
	must(t, err)
	started := make(chan struct{})
	f.mux.HandleFunc("GET /stuck", func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // after a return the server could still send an answer
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx) }()
	stuck := make(chan error, 1)
	tcp := &http.Transport{}
	defer tcp.CloseIdleConnections()
	go func() {
		resp, err := (&http.Client{Transport: tcp}).Get("http://" + f.Address() + "/stuck")
		if err == nil {
			resp.Body.Close()
		}
		stuck <- err
	}()
	<-started
	stop()
	if err := waittest.Receive(t, "the end", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := <-stuck; err == nil {
		t.Error("the stuck request was answered")
	}
}

func TestServeSaysWhyItCannotGoOn(t *testing.T) {
	t.Parallel()
	f, _, err := listening(t, "127.0.0.1:0", "", false)
	must(t, err)
	f.Close() // the listener closes unexpectedly
	if err := f.Serve(t.Context()); err == nil {
		t.Error("no error")
	}
}
