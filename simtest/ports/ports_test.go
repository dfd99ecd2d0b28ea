package ports

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func reserved(t *testing.T, address string) *Reserved {
	t.Helper()
	r, err := Reserve(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

// TestReserved: connections are refused until a server listens, also after the first server.
func TestReserved(t *testing.T) {
	t.Parallel()
	r := reserved(t, "127.0.0.1:0")
	for range 3 {
		if c, err := net.Dial("tcp", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v: %v", c, err)
		}
		l, err := net.Listen("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReservedIsGivenToNobody: the port is given neither to a listener that asks for a free port nor to a connection.
func TestReservedIsGivenToNobody(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for range 500 {
		taken[reserved(t, "127.0.0.1:0").Addr()] = true
	}
	if len(taken) != 500 {
		t.Errorf("%d reservations have %d addresses", 500, len(taken))
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	for range 2000 {
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range []string{c.LocalAddr().String(), l.Addr().String()} {
			if taken[addr] {
				t.Errorf("%s is reserved and was given to another", addr)
			}
		}
		defer func() { _ = c.(*net.TCPConn).SetLinger(0); _ = errors.Join(c.Close(), l.Close()) }()
	}
}

func TestReserveRefuses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if r, err := Reserve(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v: %v", r, err)
	}
	for _, address := range []string{"localhost", "127.0.0.1", "[::1]:0"} {
		if r, err := Reserve(address); err == nil {
			t.Errorf("%s: %v", address, r)
		}
	}
}

// TestReleasedTwice: a second release closes no file that was opened since.
func TestReleasedTwice(t *testing.T) {
	r := reserved(t, "127.0.0.1:0")
	r.Release()
	var files []*os.File // one of them has the file descriptor that the socket had
	for range 16 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	r.Release()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReserveBoth: a process that knows the port can listen on it for TCP and UDP.
func TestReserveBoth(t *testing.T) {
	t.Parallel()
	r, err := ReserveBoth()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	l, err := net.Listen("tcp4", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	udp, err := net.ListenPacket("udp4", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
}

// TestReserveBothTwice: with so many reservations that some of them try the same port, no two get it, although there
// was a listener on each port before.
func TestReserveBothTwice(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for range 500 {
		r, err := ReserveBoth()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		if taken[r.Addr()] {
			t.Errorf("%s was given twice", r.Addr())
		}
		taken[r.Addr()] = true
		l, err := net.Listen("tcp4", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
