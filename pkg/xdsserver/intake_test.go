package xdsserver

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/stats"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// sent is what a client sends: the preface, and frames of which n bytes are data.
func sent(t *testing.T, r *rand.Rand) (text []byte, n int64) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(preface)
	f := http2.NewFramer(&b, nil)
	for range 20 {
		data := make([]byte, r.IntN(300))
		n += int64(len(data))
		if err := errors.Join(f.WriteSettings(), f.WriteData(1, false, data), f.WritePing(false, [8]byte{}), f.WriteWindowUpdate(0, 9)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes(), n
}

func TestFrames(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text, want := sent(t, r)
		f := frames{left: len(preface)}
		var got int64
		for len(text) > 0 { // in pieces of any length
			piece := text[:1+r.IntN(len(text))]
			got += f.count(piece)
			text = text[len(piece):]
		}
		if got != want {
			t.Fatalf("%d bytes of data, not %d", got, want)
		}
	}
}

// contents is a connection from which a client's data comes without an end.
type contents struct {
	net.Conn
	pieces [][]byte
}

func (c *contents) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	c.pieces = c.pieces[1:]
	return n, nil
}

func (c *contents) Close() error { return nil }

func (c *contents) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// buffers counts those that are taken.
type buffers struct{ tried, taken atomic.Int64 }

func (b *buffers) Get(n int) *[]byte {
	b.taken.Add(1)
	b.tried.Add(1)
	buf := make([]byte, n)
	return &buf
}

func (b *buffers) Put(*[]byte) { b.taken.Add(-1) }

// TestAnIdleConnectionHasNoBuffer: it is taken when something comes, which is counted, and given back at the end.
func TestAnIdleConnectionHasNoBuffer(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]func() (net.Listener, error){
		"tcp": func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
		"bounded": func() (net.Listener, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return transport.Bounded(l, transport.NewGate(transport.Limit{All: 1, Peer: 1}, transport.Refusals{})), err
		},
		"unix": func() (net.Listener, error) { return net.Listen("unix", filepath.Join(t.TempDir(), "s")) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := listen()
			waittest.Must(t, err)
			defer l.Close()
			client, err := net.Dial(l.Addr().Network(), l.Addr().String())
			waittest.Must(t, err)
			testReadOnReady(t, l, client)
		})
	}
}

func testReadOnReady(t *testing.T, l net.Listener, client net.Conn) {
	t.Helper()
	of, pool := newIntake(1<<20), &buffers{}
	conn, err := of.listener(l).Accept()
	waittest.Must(t, err)
	defer conn.Close()
	text, data := sent(t, rand.New(rand.NewPCG(3, 4)))
	for _, piece := range [][]byte{text[:len(text)/2], text[len(text)/2:]} {
		before, done := pool.tried.Load(), make(chan []byte)
		go func() {
			var got []byte
			for len(got) < len(piece) {
				buf, n, err := conn.(*intakeConn).ReadOnReady(4096, pool)
				if err != nil {
					t.Error(err)
					break
				}
				got = append(got, (*buf)[:n]...)
				pool.Put(buf)
			}
			done <- got
		}()
		waittest.Until(t, "a reader that waits without a buffer", func() bool { return pool.tried.Load() > before && pool.taken.Load() == 0 })
		_, err := client.Write(piece)
		waittest.Must(t, err)
		if got := <-done; !bytes.Equal(got, piece) {
			t.Fatalf("read %q", got)
		}
	}
	if of.sum != data {
		t.Errorf("%d bytes of data are counted, not %d", of.sum, data)
	}
	waittest.Must(t, client.Close())
	if _, _, err := conn.(*intakeConn).ReadOnReady(4096, pool); !errors.Is(err, io.EOF) || pool.taken.Load() != 0 {
		t.Errorf("%v with %d buffers at the end", err, pool.taken.Load())
	}
}

// comes is a connection of which so many bytes of data come at once, several times.
func comes(t *testing.T, of *intake, n, times int) *intakeConn {
	t.Helper()
	c := &intakeConn{Conn: &contents{}, of: of}
	for range times {
		var b bytes.Buffer
		if err := http2.NewFramer(&b, nil).WriteData(1, false, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		c.Conn.(*contents).pieces = append(c.Conn.(*contents).pieces, b.Bytes())
	}
	return c
}

func read(c *intakeConn) error {
	_, err := c.Read(make([]byte, 1<<20))
	return err
}

func TestRequestsThatAreNotComplete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := newIntake(DefaultMemory)
		of.most = 100_000
		large, other, small := comes(t, of, 60_000, 3), comes(t, of, 60_000, 3), comes(t, of, 1000, 3)
		if err := errors.Join(read(large), read(other)); err != nil || of.sum != 120_000 {
			t.Fatalf("%v, %d bytes", err, of.sum)
		}
		for range 3 { // it has little, and is read in any case
			if err := read(small); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() { done <- read(other) }()
		synctest.Wait()
		ctx := of.TagConn(t.Context(), &stats.ConnTagInfo{RemoteAddr: large.RemoteAddr()})
		of.HandleRPC(ctx, &stats.Begin{})
		of.HandleRPC(ctx, &stats.InPayload{WireLength: 50_000}) // it was received
		if err := <-done; err != nil {
			t.Errorf("with room again: %v", err)
		}
		of.HandleRPC(ctx, &stats.End{}) // and nothing of it is left
		if large.held != 0 {
			t.Errorf("%d bytes are counted for a connection without streams", large.held)
		}
		_, _ = other.Close(), small.Close()
		if of.sum != 0 {
			t.Errorf("%d bytes are counted of nobody", of.sum)
		}
	})
}

// TestWhoHoldsUpOthersIsEnded: a client that sends half a request and waits keeps nobody out for long, nor do some that
// send more than there is room for.
func TestWhoHoldsUpOthersIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := newIntake(DefaultMemory)
		of.most = 100_000
		half, friend := comes(t, of, 90_000, 2), comes(t, of, 30_000, 3)
		if err := errors.Join(read(half), read(friend)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := read(friend); err != nil || time.Since(began) != intakeWait || !half.ended || friend.ended {
			t.Fatalf("beside half a request: %v after %s, ended %t and %t", err, time.Since(began), half.ended, friend.ended)
		}
		if err := read(half); !errors.Is(err, errNoIntake) {
			t.Errorf("an ended one is read: %v", err)
		}
		if of.sum != 60_000 {
			t.Errorf("%d bytes are counted", of.sum)
		}

		// Those of one peer that wait hold up one of another peer, which has more than each of them.
		of = newIntake(DefaultMemory)
		of.most = 100_000
		one, other, friend := comes(t, of, 35_000, 2), comes(t, of, 34_000, 2), comes(t, of, 40_000, 2)
		one.peer, other.peer = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.1")
		if err := errors.Join(read(one), read(other), read(friend)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		for _, c := range []*intakeConn{one, other} {
			go func() { done <- read(c) }()
		}
		synctest.Wait()
		if err := read(friend); err != nil {
			t.Error(err)
		}
		of.mu.Lock()
		if !one.ended || friend.ended {
			t.Errorf("ended %t and %t", one.ended, friend.ended)
		}
		of.mu.Unlock()
		if errs := errors.Join(<-done, <-done); !errors.Is(errs, errNoIntake) {
			t.Errorf("who was ended: %v", errs)
		}
	})
}
