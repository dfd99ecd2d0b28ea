package store

import (
	"bytes"
	"log/slog"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Raw is an undecoded value.
type Raw []byte

// NewRawWatch returns a watch of any keys, whatever their values mean: list and
// watch for tools and tests (kvstore.md §2.1). It keeps every value. As
// in any Watch, a write of an equal value is no change.
func NewRawWatch(apply func([]Change[Raw]), log *slog.Logger) *Watch[Raw] {
	return NewWatch(Kind[Raw]{Resource: "raw", Decode: decodeRaw, Apply: apply}, log)
}

func decodeRaw(wire.Expect) Decode[Raw] {
	return func(_ string, value []byte) (*Raw, error) {
		v := Raw(bytes.Clone(value))
		return &v, nil
	}
}
