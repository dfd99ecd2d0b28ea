package etcdserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/ports"
)

// echo starts a server that sends its name, and then all received data back.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					_, _ = io.WriteString(c, name+" "+lines.Text()+"\n")
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// openGate returns an open gate. Its connections end before the server.
func openGate(t *testing.T, backend string) *Gate {
	t.Helper()
	g := NewGate("127.0.0.1:0")
	t.Cleanup(g.Close)
	must(t, g.Open(backend))
	return g
}

type caller struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, g *Gate) caller {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return caller{c, bufio.NewReader(c)}
}

func (c caller) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c caller) hear(within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	return c.lines.ReadString('\n')
}

func (c caller) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := c.hear(30 * time.Second); got != want+"\n" {
		t.Fatalf("heard %q, want %q: %v", got, want, err)
	}
}

func TestFrozenGateHoldsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	g := openGate(t, echo(t, "a"))
	before := dial(t, g)
	before.say(t, "1")
	before.expect(t, "a 1")
	g.Freeze()
	during := dial(t, g)
	during.say(t, "2")
	before.say(t, "3")
	for _, c := range []caller{before, during} {
		if got, err := c.hear(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) || got != "" {
			t.Errorf("a frozen gate said %q: %v", got, err)
		}
	}
	if !g.Frozen() {
		t.Error("the gate does not say that it is frozen")
	}
	g.Thaw()
	during.expect(t, "a 2")
	before.expect(t, "a 3")
}

func TestShutGateResetsAndRefuses(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]bool{"open": false, "frozen": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGate(t, echo(t, "a"))
			c := dial(t, g)
			c.say(t, "1")
			c.expect(t, "a 1")
			if frozen {
				g.Freeze()
			}
			g.Shut()
			if _, err := c.hear(30 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection ended with %v", err)
			}
			if _, err := net.Dial("tcp", g.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("a connection to a shut gate: %v", err)
			}
			addr := g.Addr()
			must(t, g.Open(echo(t, "b")))
			if g.Addr() != addr || g.Frozen() {
				t.Errorf("opened on %s, was %s; frozen %t", g.Addr(), addr, g.Frozen())
			}
			again := dial(t, g)
			again.say(t, "2")
			again.expect(t, "b 2")
		})
	}
}

func TestGateTurnsToAnotherServer(t *testing.T) {
	t.Parallel()
	g := openGate(t, echo(t, "a"))
	c := dial(t, g)
	c.say(t, "1")
	c.expect(t, "a 1")
	must(t, g.Open(echo(t, "b")))
	if _, err := c.hear(30 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection to the first ended with %v", err)
	}
	again := dial(t, g)
	again.say(t, "2")
	again.expect(t, "b 2")
}

func TestGateWithoutServerEndsConnections(t *testing.T) {
	t.Parallel()
	nobody, err := ports.Reserve("127.0.0.1:0")
	must(t, err)
	defer nobody.Release()
	g := openGate(t, nobody.Addr())
	c, err := net.Dial("tcp", g.Addr())
	if err == nil {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
}
