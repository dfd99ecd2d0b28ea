package xdsserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const followed = "/test/Follow"

// receiver is a server with one method, which receives requests until the stream ends, or one of them is malformed; it
// has no other methods.
func receiver(t *testing.T, of *intake) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	waittest.Must(t, err)
	server := grpc.NewServer(grpc.StatsHandler(of), grpc.InTapHandle(of.open), grpc.MaxConcurrentStreams(3), grpc.WaitForHandlers(true))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Follow", ClientStreams: true, ServerStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error {
			for {
				if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
					return status.Error(codes.Aborted, err.Error())
				}
			}
		},
	}}}, struct{}{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(of.listener(l)) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	waittest.Must(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		waittest.Must(t, <-served)
		if of.sum != 0 {
			t.Errorf("%d bytes are counted of nobody", of.sum)
		}
	})
	return conn
}

// asker writes the frames of a client.
type asker struct {
	t *testing.T
	*http2.Framer
	heads *hpack.Encoder
	block bytes.Buffer
	ended chan uint32 // streams that the server ends
}

func newAsker(t *testing.T, conn net.Conn) *asker {
	t.Helper()
	_, err := conn.Write([]byte(preface))
	a := &asker{t: t, Framer: http2.NewFramer(conn, conn), ended: make(chan uint32, 1000)}
	a.heads = hpack.NewEncoder(&a.block)
	waittest.Must(t, errors.Join(err, a.WriteSettings()))
	go func() {
		for {
			f, err := a.ReadFrame()
			if err != nil {
				return
			}
			if f.Header().Type == http2.FrameRSTStream { // also after a response, since the request has not ended
				a.ended <- f.Header().StreamID
			}
		}
	}()
	return a
}

// over waits for the server to end a stream.
func (a *asker) over(id uint32) {
	a.t.Helper()
	if got := waittest.Receive(a.t, "the end of a stream", a.ended); got != id {
		a.t.Fatalf("stream %d ended, not %d", got, id)
	}
}

// ask writes the head of a request.
func (a *asker) ask(id uint32, path string) {
	a.t.Helper()
	a.block.Reset()
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "a"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		waittest.Must(a.t, a.heads.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	waittest.Must(a.t, a.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: a.block.Bytes(), EndHeaders: true}))
}

// half writes n bytes of a request that has more.
func (a *asker) half(id uint32, n int) {
	a.t.Helper()
	data := make([]byte, n)
	binary.BigEndian.PutUint32(data[1:], uint32(n)) // without the five bytes of this head
	waittest.Must(a.t, a.WriteData(id, false, data))
}

// TestNothingIsLeftOfStreams: while one stream stays open with half a request, others open and end: ended by the
// client, by the server, with an unknown method, and one above the limit.
func TestNothingIsLeftOfStreams(t *testing.T) {
	t.Parallel()
	of := newIntake(1 << 20)
	a := newAsker(t, receiver(t, of))
	counts := func(what string, n int64) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			of.mu.Lock()
			defer of.mu.Unlock()
			return of.sum == n
		})
	}
	a.ask(1, followed)
	a.half(1, 1000)
	counts("half a request", 1000)
	id := uint32(3)
	for range 50 {
		a.ask(id, followed)
		a.half(id, 100)
		counts("half a request more", 1100)
		waittest.Must(t, a.WriteRSTStream(id, http2.ErrCodeCancel))
		counts("nothing of a stream that the client ended", 1000)

		a.ask(id+2, followed)
		waittest.Must(t, a.WriteData(id+2, false, []byte{0, 0, 0, 0, 1, 0})) // is no message
		a.over(id + 2)
		counts("nothing of a stream that the server ended", 1000)

		a.ask(id+4, "/test/Unknown")
		a.half(id+4, 100)
		a.over(id + 4)
		counts("nothing of a stream without a handler", 1000)
		id += 6
	}
	a.ask(id, followed)
	a.ask(id+2, followed)
	a.half(id+2, 30)
	counts("three streams", 1030)
	a.ask(id+4, followed) // there are three already
	a.half(id+4, 100)
	a.over(id + 4)
	a.half(id, 20)
	counts("nothing of a stream that is one too many", 1050)
	waittest.Must(t, a.WriteData(1, true, make([]byte, 5))) // the end of the request, and of the stream
	counts("nothing of a request that was received", 50)
}
