package xdsserver

import "encoding/binary"

// preface is what a client sends first (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// What has to be known of frames (RFC 9113, sections 4.1 and 6).
const (
	frameHead         = 9
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameContinuation = 9
	flagEndStream     = 1
	flagEndHeaders    = 4
)

// frames follows the frames of one direction of a connection.
type frames struct {
	frame

	left int // of the preface, or of the frame
	head [frameHead]byte
	n    int // how much of the next head is there
}

// frame is what the head of one says.
type frame struct {
	kind, flags byte
	stream      uint32
}

// follow calls see for each part of a frame, with the bytes of its contents that are there, padding included: none at
// the head. It returns how much of p there is up to the end of the head of a request, or of p.
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

// begin reads the head of a frame.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.frame = frame{kind: f.head[3], flags: f.head[4], stream: binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)}
	f.n = 0
}

// endsHead: the head of a request, or of an answer, ends with it.
func (f frame) endsHead() bool {
	return (f.kind == frameHeaders || f.kind == frameContinuation) && f.flags&flagEndHeaders != 0
}

// endsStream: its sender is through with the stream.
func (f frame) endsStream() bool {
	return f.kind == frameReset || (f.kind == frameHeaders || f.kind == frameData) && f.flags&flagEndStream != 0
}
