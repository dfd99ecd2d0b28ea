package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// unmarshal decodes a JSON value whose memory is bounded by its size.
func unmarshal(name string, value []byte, to any) error {
	if err := bounded(name, value); err != nil {
		return err
	}
	m := newMeter(len(value))
	if err := m.takeJSON(value); err != nil {
		return err
	}
	if err := json.Unmarshal(value, to); err != nil {
		return rejectDecode(err)
	}
	return nil
}

// mustJSON encodes a value that can always be encoded. It panics for another value (a net.IP that is neither 0,
// 4 nor 16 bytes long), which is an error of the caller.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wire: a value that cannot be written was given to Encode: %v", err))
	}
	return b
}

// EncodeTimestamp returns the value of a heartbeat or a canary: the time of writing, in seconds, in its own
// zone. Readers ignore it (wire.md §1.9, §1.10).
func EncodeTimestamp(t time.Time) []byte {
	return t.AppendFormat(nil, time.RFC3339)
}
