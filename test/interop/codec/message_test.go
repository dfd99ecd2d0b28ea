package codec

import (
	"slices"

	"github.com/klauspost/compress/zstd"
)

// message spoils the protobuf message in a value.
func (m mutator) message(v []byte) []byte {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return m.text(v)
	}
	defer r.Close()
	plain, err := r.DecodeAll(v, nil)
	if err != nil || len(plain) == 0 {
		return m.text(v)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return m.text(v)
	}
	defer w.Close()
	return w.EncodeAll(m.fields(plain), nil)
}

// fields spoils the bytes of a message, mostly in its first fields, which are those that are checked.
func (m mutator) fields(v []byte) []byte {
	v = slices.Clone(v)
	at := m.r.IntN(len(v))
	if m.r.IntN(2) == 0 {
		at = m.r.IntN(min(len(v), 40))
	}
	switch m.r.IntN(5) {
	case 0:
		return v[:at]
	case 1:
		v[at] = byte(m.r.IntN(256))
	case 2:
		v[at] ^= 1 << m.r.IntN(8)
	case 3:
		return slices.Delete(v, at, min(at+1+m.r.IntN(3), len(v)))
	default: // another field, known or unknown, well-formed or not, of any wire type
		return append(v, m.pick(
			"\x0a\x05other", "\x0a\x00", "\x10\x07", "\x10\xff\xff\xff\xff\x0f", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x12\x01x",
			"\x3a\x04FQDN", "\x3a\x04IPv6", "\x22\x00", "\x08\x01", "\x2a\x00", "\x2a\x03\x0a\x01k", "\x2a\x03\x12\x01v", "\x42\x00", "\x42\x05\x0a\x03bad",
			"\x42\x0a\x0a\x0810.0.0.1", "\x4a\x02\x18\x01", "\x4a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x4a\x00", "\x4a\x02\x1a\x00",
			"\xa2\x06\x01x", "\xa0\x06\x01", "\xa5\x06abcd", "\xa1\x06abcdefgh", "\xa3\x06\xa4\x06", "\xa3\x06", "\xa4\x06", "\x00\x00", "\x07", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
			"\x42\x04\x12\x02\x08\x02", "\x42\x05\x12\x03\x08\x80\x01", "\x42\x02\x22\x00", "\x42\x03\x22\x01x", "\x42\x02\x42\x00", "\x42\x04\x42\x02\x0a\x00",
			"\x0a\x02\xff\xfe", "\x2a\x06\x0a\x01k\x12\x01\xff",
		)...)
	}
	return v
}
