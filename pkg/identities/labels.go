package identities

import (
	"encoding/binary"
	"iter"
	"slices"
	"unique"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Labels is an immutable list of labels. Two lists are == when they hold the same labels in the same order. The zero
// value is empty. All identities with the same keys share one list of keys in the process, so an identity with 8
// labels takes 160 bytes instead of 730.
type Labels struct {
	keys   unique.Handle[string] // source and key of each label, packed; invalid when values is empty
	values string                // the value of each label, packed
}

// NewLabels returns the labels in compact form. It shares no memory with ls.
func NewLabels(ls wire.Labels) Labels {
	if len(ls) == 0 {
		return Labels{}
	}
	var keyBuf, valueBuf [512]byte
	keys, values := keyBuf[:0], valueBuf[:0]
	if k, v := packedSizes(ls); max(k, v) > len(keyBuf) { // buffers that grow take several times as much
		keys, values = make([]byte, 0, k), make([]byte, 0, v)
	}
	for _, l := range ls {
		keys = pack(pack(keys, l.Source), l.Key)
		values = pack(values, l.Value)
	}
	return Labels{keys: unique.Make(string(keys)), values: string(values)}
}

// Size returns the size of the texts in bytes.
func (ls Labels) Size() int {
	if ls.values == "" {
		return 0
	}
	return len(ls.keys.Value()) + len(ls.values)
}

// All iterates over the labels in the order in which they were written.
func (ls Labels) All() iter.Seq[wire.Label] {
	return func(yield func(wire.Label) bool) {
		values := ls.values
		if values == "" {
			return
		}
		for keys := ls.keys.Value(); keys != ""; {
			var l wire.Label
			l.Source, keys = unpack(keys)
			l.Key, keys = unpack(keys)
			l.Value, values = unpack(values)
			if !yield(l) {
				return
			}
		}
	}
}

// Wire returns the labels as they were given to [NewLabels].
func (ls Labels) Wire() wire.Labels { return slices.Collect(ls.All()) }

// Map returns the labels as a map from "source:key" to value.
func (ls Labels) Map() map[string]string { return ls.Wire().Map() }

// String returns the label string, "source:key=value;" for each label in its order.
func (ls Labels) String() string { return ls.Wire().String() }

// packedSizes returns the maximum packed sizes of the keys and of the values.
func packedSizes(ls wire.Labels) (keys, values int) {
	const prefix = 4 // of lengths up to 2^28
	for _, l := range ls {
		keys += len(l.Source) + len(l.Key) + 2*prefix
		values += len(l.Value) + prefix
	}
	return keys, values
}

// pack appends the text with its length before it.
func pack(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func unpack(packed string) (text, rest string) {
	var size, shift uint
	for {
		b := packed[0]
		packed = packed[1:]
		size |= uint(b&0x7f) << shift
		if shift += 7; b < 0x80 {
			return packed[:size], packed[size:]
		}
	}
}
