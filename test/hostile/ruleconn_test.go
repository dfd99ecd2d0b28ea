package hostile

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func bytesOf(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // it has plain fields only
	}
	return b
}

// silenceRules are servers that stop answering, each at another step.
func silenceRules() []*rule {
	read := func(step string, want []codes.Code, at func(q *pb.RangeRequest) bool) *rule {
		return &rule{name: "silence: " + step, want: want, ranged: func(ctx context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
			if !at(q) {
				return a, nil
			}
			s.spoilt()
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}
	watch := func(step string, want []codes.Code, at func(w *watched, a *pb.WatchResponse) bool) *rule {
		return &rule{name: "silence: " + step, want: want, watched: func(_ context.Context, s *server, w *watched, a *pb.WatchResponse) ([]any, error) {
			if !at(w, a) {
				return []any{a}, nil
			}
			s.spoilt()
			return nil, nil
		}}
	}
	first := func(q *pb.RangeRequest) bool { return q.CountOnly }
	all := []*rule{
		{name: "silence: connect", want: []codes.Code{codes.NotConnectedYet}, conn: drain},
		read("the first read", []codes.Code{codes.NotConnectedYet}, first),
		read("the configuration", []codes.Code{codes.NoConfiguration}, func(q *pb.RangeRequest) bool { return about(q, wire.ClusterConfigPrefix) }),
		read("the canaries", []codes.Code{codes.NoCanary}, func(q *pb.RangeRequest) bool { return about(q, wire.SyncedPrefix) }),
		watch("the watch of the configuration", nil, func(w *watched, _ *pb.WatchResponse) bool {
			return strings.HasPrefix(string(w.key), wire.ClusterConfigPrefix)
		}),
		watch("events", []codes.Code{codes.NotConfirmed}, func(w *watched, a *pb.WatchResponse) bool { return w.families() && !a.Created }),
		{name: "silence: status", status: func(ctx context.Context, s *server, _ *pb.StatusResponse) (any, error) {
			s.spoilt()
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	}
	for _, r := range wire.Resources() {
		optional := r.Describe().Optional
		want := func(c ...codes.Code) []codes.Code {
			if optional {
				return nil
			}
			return c
		}
		prefix := r.StorePrefix(false)
		all = append(all,
			read("the list of "+string(r), want(codes.Copying, codes.ListFails), func(q *pb.RangeRequest) bool { return about(q, prefix) }),
			watch("the watch of "+string(r), want(codes.NotFollowed, codes.StreamBroken), func(w *watched, a *pb.WatchResponse) bool {
				return strings.HasPrefix(string(w.key), prefix)
			}))
	}
	probes := &rule{name: "silence: every later read", want: []codes.Code{codes.EtcdSilent, codes.ConnectionLost, codes.NotConnectedYet}}
	probes.ranged = func(ctx context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		if first(q) && s.broken.Add(1) > 3 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return a, nil
	}
	return append(all, probes)
}

// connRules are programs that are not etcd, or that break the protocol.
func connRules() []*rule {
	never := []codes.Code{codes.NotConnectedYet}
	write := func(name string, say func(c net.Conn) error) *rule {
		return &rule{name: "connection: " + name, want: never, conn: func(c net.Conn) {
			if say(c) == nil {
				drain(c)
			}
		}}
	}
	settings := func(c net.Conn) *http2.Framer {
		f := http2.NewFramer(c, nil)
		_ = f.WriteSettings()
		return f
	}
	grpcErr := func(name string, code grpccodes.Code, text string) *rule {
		return reads("connection: error "+name, append(never, breaks()...), every, func(*pb.RangeRequest, *pb.RangeResponse) (any, error) {
			return nil, status.Error(code, text)
		})
	}
	garbage := func(name string, message ...[]byte) *rule {
		return reads("connection: "+name, append(never, breaks()...), every, func(*pb.RangeRequest, *pb.RangeResponse) (any, error) {
			return encoded{message}, nil
		})
	}
	return []*rule{
		write("closed at once", func(c net.Conn) error { return errors.Join(c.Close(), io.EOF) }),
		write("random bytes", func(c net.Conn) error { _, err := io.CopyN(c, rand.Reader, 1<<20); return err }),
		write("a TLS alert", func(c net.Conn) error { _, err := c.Write([]byte{21, 3, 3, 0, 2, 2, 40}); return err }),
		write("TLS records without an end", func(c net.Conn) error {
			_, err := c.Write(append([]byte{22, 3, 3, 0x40, 0}, make([]byte, 1<<14)...))
			return err
		}),
		write("HTTP/1.1", func(c net.Conn) error {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
			return err
		}),
		write("a byte a second", func(c net.Conn) error {
			for {
				if _, err := c.Write([]byte{0}); err != nil {
					return err
				}
				// Data from the client does not end the wait, but the end of the connection does.
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
					return errors.Join(err, io.EOF)
				}
			}
		}),
		write("frames of a size that nobody allows", func(c net.Conn) error {
			_ = settings(c)
			_, err := c.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
			return err
		}),
		write("frames of unknown kinds", func(c net.Conn) error {
			f := settings(c)
			for i := range 1000 {
				if err := f.WriteRawFrame(http2.FrameType(20+i%200), 0xff, uint32(i), make([]byte, 100)); err != nil {
					return err
				}
			}
			return nil
		}),
		write("a header that goes on and on", func(c net.Conn) error {
			f := settings(c)
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x40}})
			for err == nil {
				err = f.WriteContinuation(1, false, make([]byte, 1<<14))
			}
			return err
		}),
		write("GOAWAY", func(c net.Conn) error {
			return settings(c).WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
		}),
		write("a page of HTML", html),
		grpcErr("without a text", grpccodes.Unknown, ""),
		grpcErr("with 64 KiB of text", grpccodes.Internal, strings.Repeat("e", 64<<10)),
		grpcErr("with control characters", grpccodes.Unavailable, "\x1b[2J\u009b\u202e\x00\xff"),
		grpcErr("of a code that is none", grpccodes.Code(4711), "what"),
		grpcErr("cancelled", grpccodes.Canceled, "context canceled"),
		grpcErr("out of range", grpccodes.OutOfRange, "larger than max"),
		grpcErr("always too large", grpccodes.ResourceExhausted, "grpc: received message larger than max (1 vs. 0)"),
		garbage("no protobuf", []byte("\xff\xff\xff\xff no protobuf")),
		garbage("an empty message"),
		garbage("a length beyond the end", []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f}),
		garbage("groups in groups", []byte(strings.Repeat("\x0b", 1<<16))),
	}
}

// html answers each request as a web server would.
func html(c net.Conn) error {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if h, is := frame.(*http2.HeadersFrame); is {
			var block strings.Builder
			e := hpack.NewEncoder(&block)
			_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = e.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/html"})
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: []byte(block.String()), EndHeaders: true})
			_ = f.WriteData(h.StreamID, true, []byte("<html>"))
		}
	}
}
