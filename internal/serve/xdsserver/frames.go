package xdsserver

import "encoding/binary"

// preface is the first data that a client sends (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Sizes, types and flags of frames (RFC 9113, sections 4.1 and 6).
const (
	frameHead         = 9
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameContinuation = 9
	flagEndStream     = 1
	flagEndHeaders    = 4
)

// frames reads the frames of one direction of a connection.
type frames struct {
	frame

	left int // bytes to come of the preface, or of the frame
	head [frameHead]byte
	n    int // bytes of the next head that were read
}

// frame has the fields of the head of a frame.
type frame struct {
	kind, flags byte
	stream      uint32
}

// follow calls see for the head of each frame, with n = 0, and then for each part of its payload that is in p, with
// the length of the part, padding included. It returns how many bytes of p it has read: up to the end of the head of a
// request, or all.
func (f *frames) follow(p []byte, see func(f frame, n int)) (n int) {
	for n < len(p) {
		if f.left > 0 {
			part := min(f.left, len(p)-n)
			n += part
			f.left -= part
			see(f.frame, part)
		} else {
			part := copy(f.head[f.n:], p[n:])
			n += part
			if f.n += part; f.n < frameHead {
				break
			}
			f.begin()
			see(f.frame, 0)
		}
		if f.left == 0 && f.endsHead() {
			break
		}
	}
	return n
}

// begin parses the head of a frame.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.frame = frame{kind: f.head[3], flags: f.head[4], stream: binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)}
	f.n = 0
}

// endsHead reports whether the head of a request, or of an answer, ends with this frame.
func (f frame) endsHead() bool {
	return (f.kind == frameHeaders || f.kind == frameContinuation) && f.flags&flagEndHeaders != 0
}

// endsStream reports whether the sender of this frame ends the stream with it.
func (f frame) endsStream() bool {
	return f.kind == frameReset || (f.kind == frameHeaders || f.kind == frameData) && f.flags&flagEndStream != 0
}
