package wire

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// maxSliceSize bounds the decompressed size of an endpoint slice (wire.md §1.4).
const maxSliceSize = 16 << 20

// SliceEncoder writes many endpoint slices with the memory of one encoder,
// which is more than a megabyte. It may be used by several goroutines, one at a
// time gets through. The values are those of [EndpointSlice.Encode].
type SliceEncoder struct {
	zstd *zstd.Encoder
}

// NewSliceEncoder returns an encoder, to be closed in the end.
func NewSliceEncoder() *SliceEncoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprintf("wire: the options of the zstd encoder are wrong: %v", err))
	}
	return &SliceEncoder{zstd: w}
}

// Encode returns the value to write: one zstd frame with a checksum, at the
// library's default level.
func (e *SliceEncoder) Encode(s *EndpointSlice) []byte {
	return e.zstd.EncodeAll(s.appendProto(nil), nil)
}

// Close releases the encoder.
func (e *SliceEncoder) Close() { _ = e.zstd.Close() }

// decompress reads any number of frames, of at most [maxSliceSize] bytes
// together; no frame may ask for a larger window either. No bytes are no
// frames, and decompress to nothing.
func decompress(value []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSliceSize))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := r.DecodeAll(value, nil)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, fmt.Errorf("it unpacks to more than %d bytes: %w", maxSliceSize, err)
	}
	return data, err
}
