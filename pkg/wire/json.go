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

// mustJSON encodes what always can be. A value that cannot be encoded (an
// net.IP that is neither 0, 4 nor 16 bytes long) is its maker's mistake.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wire: a value that cannot be written was given to Encode: %v", err))
	}
	return b
}

// EncodeTimestamp returns the value of a heartbeat or a canary: the time of writing, in seconds, in
// its own zone. Readers do not read it (wire.md §1.9, §1.10).
func EncodeTimestamp(t time.Time) []byte {
	return t.AppendFormat(nil, time.RFC3339)
}
