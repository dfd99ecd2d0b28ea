package wire

import "time"

// EncodeTimestamp returns the value of a heartbeat or a canary: the time of
// writing, in seconds, in its own zone. Readers do not read it
// (wire.md §1.9, §1.10).
func EncodeTimestamp(t time.Time) []byte {
	return t.AppendFormat(nil, time.RFC3339)
}
