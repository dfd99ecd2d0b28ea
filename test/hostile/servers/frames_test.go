package servers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// TestFrames: HTTP/2 frames, valid, invalid and in any order, that contain gRPC messages of the same kinds.
func TestFrames(t *testing.T) {
	w := newWorld(t)
	x := w.newXDSClients()
	w.attack(w.frames(w.agent.xds, nil, grpcHeaders, grpcMessage), x.newcomer)
}

// frames sends frames to an address, over TLS if there is a configuration.
func (w *world) frames(address string, secure *tls.Config, headers func(*rand.Rand) []hpack.HeaderField, body func(*rand.Rand) []byte) conversation {
	return func(ctx context.Context, r *rand.Rand) int {
		conn, err := net.DialTimeout("tcp", address, lostTime)
		if err != nil {
			return 1
		}
		if secure != nil {
			conn = tls.Client(conn, secure)
		}
		defer conn.Close()
		var out bytes.Buffer
		f := frameWriter{r: r, wild: r.IntN(3) == 0, to: http2.NewFramer(&out, nil), headers: headers, body: body}
		f.to.AllowIllegalWrites = true
		begin := []byte(http2.ClientPreface)
		if r.IntN(20) == 0 {
			begin = mutated(r, begin)
		}
		out.Write(begin)
		_ = f.to.WriteSettings() // into memory, like all writes
		frames := 1 + r.IntN(40)
		for range frames {
			f.one()
		}
		text := out.Bytes()
		if f.wild && r.IntN(2) == 0 && len(text) > len(begin) {
			text = append(slices.Clone(text[:len(begin)]), mutated(r, text[len(begin):])...)
		}
		_ = conn.SetDeadline(time.Now().Add(lostTime))
		if r.IntN(50) == 0 {
			half := r.IntN(len(text) + 1)
			_, _ = conn.Write(text[:half])
			_ = waiting.Sleep(ctx, time.Millisecond)
			text = text[half:]
		}
		if _, err := conn.Write(text); err != nil {
			return frames
		}
		if c, ok := conn.(interface{ CloseWrite() error }); ok && r.IntN(2) == 0 {
			_ = c.CloseWrite()
			_ = conn.SetDeadline(time.Now().Add(lostTime / 10))
			_, _ = io.Copy(io.Discard, conn)
		}
		return frames
	}
}

// frameWriter writes frames, most of which are valid after the earlier ones.
type frameWriter struct {
	r       *rand.Rand
	to      *http2.Framer
	stream  uint32
	wild    bool // it breaks the rules of HTTP/2 too, so that the connection ends soon
	headers func(*rand.Rand) []hpack.HeaderField
	body    func(*rand.Rand) []byte
}

// id is an open stream, or any number.
func (f *frameWriter) id() uint32 {
	if !f.wild {
		return max(f.stream, 1)
	}
	return one(f.r, f.stream, f.stream, f.stream, f.stream, 0, f.stream+2, 2, f.r.Uint32())
}

// one writes a frame, or a few that belong together.
func (f *frameWriter) one() {
	r := f.r
	kinds := 12
	if !f.wild {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0, 1, 2, 3: // a request
		f.stream += 2
		f.stream |= 1
		f.writeHeaders(f.stream, r.IntN(10) == 0)
		for range r.IntN(4) {
			_ = f.to.WriteData(f.stream, r.IntN(8) == 0, f.body(r))
		}
	case 4, 5:
		_ = f.to.WriteData(f.id(), r.IntN(4) == 0, f.body(r))
	case 6:
		_ = f.to.WriteRSTStream(f.id(), http2.ErrCode(r.Uint32()))
	case 7:
		_ = f.to.WriteWindowUpdate(f.id(), one(r, 0, 1, 1<<31-1, r.Uint32()))
	case 8:
		_ = f.to.WriteSettings(http2.Setting{ID: http2.SettingID(r.IntN(8)), Val: one(r, 0, 1, 1<<31, r.Uint32())})
	case 9:
		_ = f.to.WritePing(r.IntN(2) == 0, [8]byte(binary.BigEndian.AppendUint64(nil, r.Uint64())))
	case 10:
		f.writeHeaders(f.id(), r.IntN(2) == 0)
		for range r.IntN(20) {
			_ = f.to.WriteContinuation(f.id(), r.IntN(10) == 0, bytesOf(r, 200))
		}
	default:
		_ = f.to.WriteRawFrame(http2.FrameType(r.IntN(14)), http2.Flags(r.Uint32()), f.id(), bytesOf(r, 64))
	}
}

func (f *frameWriter) writeHeaders(id uint32, ends bool) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range f.headers(f.r) {
		_ = e.WriteField(h) // into memory
	}
	text := block.Bytes()
	if f.wild && f.r.IntN(10) == 0 {
		text = mutated(f.r, text)
	}
	_ = f.to.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: text, EndStream: ends, EndHeaders: !f.wild || f.r.IntN(20) > 0, PadLength: uint8(f.r.IntN(3) / 2 * f.r.IntN(200))})
}

const aggregated = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// grpcHeaders are the headers of a call, or similar ones.
func grpcHeaders(r *rand.Rand) []hpack.HeaderField {
	all := []hpack.HeaderField{
		{Name: ":method", Value: one(r, "POST", "POST", "POST", "GET", "")},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: one(r, aggregated+"DeltaAggregatedResources", aggregated+"StreamAggregatedResources", aggregated+"Nothing", "/", "", "/grpc.health.v1.Health/Check", xdsName(r))},
		{Name: ":authority", Value: one(r, "agent", "", "\x00")},
		{Name: "content-type", Value: one(r, "application/grpc", "application/grpc", "application/grpc", "application/grpc+json", "text/html", "")},
		{Name: "te", Value: "trailers"},
		{Name: "grpc-timeout", Value: one(r, "1S", "1n", "99999999H", "x", "-1S")},
	}
	for range r.IntN(3) {
		all = append(all, hpack.HeaderField{Name: one(r, "grpc-encoding", "grpc-accept-encoding", "x-\x00", "X-UPPER", ":path", "a-bin"), Value: one(r, "gzip", "identity", string(bytesOf(r, 50)), strings.Repeat("h", r.IntN(20_000)))})
	}
	if r.IntN(20) == 0 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// grpcMessage is a request in a gRPC frame, whose bytes, flag and length may be wrong.
func grpcMessage(r *rand.Rand) []byte {
	var m proto.Message = deltaRequest(r, new(nonces))
	if r.IntN(2) == 0 {
		m = sotwRequest(r, new(nonces))
	}
	body, err := proto.Marshal(m)
	if err != nil || len(body) > 12_000 { // some names are not UTF-8
		body = bytesOf(r, 100)
	}
	if r.IntN(2) == 0 {
		body = mutated(r, body)
	}
	flag, length := byte(0), uint32(len(body))
	if r.IntN(15) == 0 {
		flag = byte(r.Uint32())
	}
	if r.IntN(15) == 0 {
		length = r.Uint32()
	}
	return append(binary.BigEndian.AppendUint32([]byte{flag}, length), body...)
}
