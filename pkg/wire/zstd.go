package wire

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// SliceEncoder writes many endpoint slices with the memory of one encoder, which is more than a megabyte. It
// may be used by several goroutines, but encodes for one at a time. The values are those of
// [EndpointSlice.Encode].
type SliceEncoder struct {
	zstd *zstd.Encoder
}

// NewSliceEncoder returns an encoder, which the caller has to close.
func NewSliceEncoder() *SliceEncoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprintf("wire: the options of the zstd encoder are wrong: %v", err))
	}
	return &SliceEncoder{zstd: w}
}

// Encode returns the value to write: one zstd frame with a checksum, at the library's default level. The
// message in the frame is always Cilium's byte for byte (wire.md §1.4). The frame is identical too when nothing
// can be compressed. When something can, as in all large slices, its bytes depend on the release of the
// library, on both sides. Readers use only the message.
func (e *SliceEncoder) Encode(s *EndpointSlice) []byte {
	return e.zstd.EncodeAll(s.appendProto(nil), nil)
}

// Close releases the encoder.
func (e *SliceEncoder) Close() { _ = e.zstd.Close() }

const (
	// maxWindow is the largest window that a frame may name. No memory is taken for it. Writers that stream
	// name 8 MiB, for contents of any size.
	maxWindow = 16 << 20
	// maxInflaters bounds how many slices one decoder unpacks at a time, each with
	// up to [MaxValue] of memory that is kept.
	maxInflaters = 4
	// usualSlice is the initial size of a buffer: few slices unpack to more.
	usualSlice = 64 << 10
)

// SliceDecoder reads many endpoint slices with the memory of a few. It may be used by several goroutines; those
// beyond [maxInflaters] wait. It need not be closed.
type SliceDecoder struct {
	idle chan *inflater
}

// NewSliceDecoder returns a decoder. It takes its memory when it is used.
func NewSliceDecoder() *SliceDecoder {
	n := min(maxInflaters, runtime.GOMAXPROCS(0))
	d := &SliceDecoder{idle: make(chan *inflater, n)}
	for range n {
		d.idle <- new(inflater)
	}
	return d
}

// Decode is [DecodeEndpointSlice].
func (d *SliceDecoder) Decode(name string, value []byte, e Expect) (*EndpointSlice, error) {
	if err := bounded(name, value); err != nil {
		return nil, err
	}
	i := <-d.idle
	defer func() { d.idle <- i }()
	return i.decode(name, value, e)
}

// inflater unpacks one value at a time. A frame cannot make it allocate memory: the contents are written to an
// existing buffer, which is kept.
type inflater struct {
	zstd   *zstd.Decoder
	buffer []byte
}

func (i *inflater) decode(name string, value []byte, e Expect) (*EndpointSlice, error) {
	message, err := i.decompress(value)
	if err != nil {
		return nil, err
	}
	s := &EndpointSlice{}
	if err := s.parseProto(message); err != nil {
		return nil, rejectDecode(err)
	}
	if err := s.validate(name, e); err != nil {
		return nil, err
	}
	return s, nil
}

// decompress reads any number of frames, of at most [MaxValue] bytes together. An empty value has no frames,
// and decompresses to nothing. The result is valid until the next call.
func (i *inflater) decompress(value []byte) ([]byte, error) {
	if i.zstd == nil {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
		i.zstd, i.buffer = r, make([]byte, 0, usualSlice)
	}
	data, err := i.zstd.DecodeAll(value, i.buffer)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) && cap(i.buffer) < MaxValue {
		i.buffer = make([]byte, 0, MaxValue)
		data, err = i.zstd.DecodeAll(value, i.buffer)
	}
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, reject(ReasonTooLarge, "it unpacks to more than %d bytes: %w", MaxValue, err)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, reject(ReasonTooLarge, "it asks for a window of more than %d bytes, or a block is larger than its window: %w", maxWindow, err)
	case err != nil:
		return nil, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return data, nil
}
