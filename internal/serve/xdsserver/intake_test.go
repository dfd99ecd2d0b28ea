package xdsserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/stats"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// someFrames are a client's data: the preface, and frames of which n bytes are data of stream 1.
func someFrames(t *testing.T, r *rand.Rand) (text []byte, n int64) {
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
		text, want := someFrames(t, r)
		f := frames{left: len(preface)}
		var got int64
		for len(text) > 0 { // in pieces of any length
			piece := text[:1+r.IntN(len(text))]
			n := f.follow(piece, func(f frame, n int) {
				if f.kind == frameData && f.stream == 1 {
					got += int64(n)
				}
			})
			if n != len(piece) {
				t.Fatalf("a head of a request after %d bytes of %q", n, piece)
			}
			text = text[n:]
		}
		if got != want {
			t.Fatalf("%d bytes of data, not %d", got, want)
		}
	}
}

// TestTheHeadOfARequestEndsAPiece: for all ways to cut it into pieces, also when it has several frames.
func TestTheHeadOfARequestEndsAPiece(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(preface)
	f := http2.NewFramer(&b, nil)
	var ends []int
	for n := range 20 {
		id := uint32(2*n + 1)
		block := make([]byte, 10*n)
		waittest.Must(t, errors.Join(f.WriteSettings(), f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: n%2 == 0})))
		if n%2 > 0 {
			waittest.Must(t, errors.Join(f.WriteContinuation(id, false, block), f.WriteContinuation(id, true, nil)))
		}
		ends = append(ends, b.Len())
		waittest.Must(t, f.WriteData(id, false, block))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		in, at, text := frames{left: len(preface)}, 0, b.Bytes()
		var got []int
		for at < len(text) {
			most := 1 + r.IntN(len(text)-at)
			n := in.follow(text[at:at+most], func(frame, int) {})
			if at += n; in.left == 0 && in.n == 0 && in.endsHead() {
				got = append(got, at)
			} else if n < most {
				t.Fatalf("it ends at %d", at)
			}
		}
		if !slices.Equal(got, ends) {
			t.Fatalf("heads end at %d, not at %d", got, ends)
		}
	}
}

// contents is a connection that delivers a client's data in pieces.
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

func (c *contents) Write(p []byte) (int, error) { return len(p), nil }

func (c *contents) Close() error { return nil }

// buffers counts those that are taken.
type buffers struct{ tried, taken atomic.Int64 }

func (b *buffers) Get(n int) *[]byte {
	b.taken.Add(1)
	b.tried.Add(1)
	buf := make([]byte, n)
	return &buf
}

func (b *buffers) Put(*[]byte) { b.taken.Add(-1) }

// TestAnIdleConnectionHasNoBuffer: a buffer is taken when data arrives, which is counted, and given back at the end.
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
	opens(t, of, conn.(*intakeConn), 1)
	text, data := someFrames(t, rand.New(rand.NewPCG(3, 4)))
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

// opens does what gRPC does with the head of a request; it returns the context of the stream.
func opens(t *testing.T, of *intake, c *intakeConn, stream uint32) context.Context {
	t.Helper()
	c.in.stream = stream
	defer func() { c.in.stream = 0 }()
	ctx, err := of.open(of.TagConn(t.Context(), &stats.ConnTagInfo{RemoteAddr: connAddr{conn: c}}), nil)
	waittest.Must(t, err)
	return ctx
}

// comes returns a connection on which n bytes of data arrive at once, several times, for a stream that is open.
func comes(t *testing.T, of *intake, n, times int) (*intakeConn, context.Context) {
	t.Helper()
	c := &intakeConn{Conn: &contents{}, of: of, streams: make(map[uint32]*intakeStream)}
	for range times {
		var b bytes.Buffer
		if err := http2.NewFramer(&b, nil).WriteData(1, false, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		c.Conn.(*contents).pieces = append(c.Conn.(*contents).pieces, b.Bytes())
	}
	return c, opens(t, of, c, 1)
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
		large, ctx := comes(t, of, 60_000, 3)
		other, _ := comes(t, of, 60_000, 3)
		small, _ := comes(t, of, 1000, 3)
		if err := errors.Join(read(large), read(other)); err != nil || of.sum != 120_000 {
			t.Fatalf("%v, %d bytes", err, of.sum)
		}
		for range 3 { // it has received little, and is always read
			if err := read(small); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() { done <- read(other) }()
		synctest.Wait()
		of.HandleRPC(ctx, &stats.Begin{})
		of.HandleRPC(ctx, &stats.InPayload{WireLength: 50_000}) // it was received
		if err := <-done; err != nil {
			t.Errorf("with room again: %v", err)
		}
		of.HandleRPC(ctx, &stats.End{})
		if large.held != 10_000 {
			t.Errorf("%d bytes are counted of a stream that gRPC has still", large.held)
		}
		var answer bytes.Buffer
		waittest.Must(t, http2.NewFramer(&answer, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true}))
		if _, err := large.Write(answer.Bytes()); err != nil || large.held != 0 {
			t.Errorf("%d bytes are counted of a stream that is over (%v)", large.held, err)
		}
		_, _ = other.Close(), small.Close()
		if of.sum != 0 {
			t.Errorf("%d bytes are counted of nobody", of.sum)
		}
	})
}

// TestWhoHoldsUpOthersIsEnded: a client that sends half a request and waits does not keep others out for long, nor do
// some that send more than there is room for.
func TestWhoHoldsUpOthersIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := newIntake(DefaultMemory)
		of.most = 100_000
		half, _ := comes(t, of, 90_000, 2)
		friend, _ := comes(t, of, 30_000, 3)
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

		// Two waiting connections of one peer hold up one of another peer, which has more bytes than each of them.
		of = newIntake(DefaultMemory)
		of.most = 100_000
		one, _ := comes(t, of, 35_000, 2)
		other, _ := comes(t, of, 34_000, 2)
		friend, _ = comes(t, of, 40_000, 2)
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
