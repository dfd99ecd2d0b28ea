package kvstore

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// TestValuesOnOneLine: a value cannot break a line, and does not reach the terminal unquoted.
func TestValuesOnOneLine(t *testing.T) {
	t.Parallel()
	for value, text := range map[string]string{
		"":                "",
		"plain":           "plain",
		"ä b":             "ä b",
		"a\tb":            `"a\tb"`,
		"\x1b[31mred":     `"\x1b[31mred"`,
		"\xc3\x28":        "base64:wyg=",
		"\u202eright":     `"\u202eright"`,
		`{"a":"b\u0000"}`: `{"a":"b\u0000"}`,
	} {
		if got := show(kvstore.KeyValue{Key: []byte("k")}).withValue("k", []byte(value)).text(); got != text {
			t.Errorf("%q: %s, want %s", value, got, text)
		}
	}
	if s := show(kvstore.KeyValue{Key: []byte("\xff"), Lease: 255, ModRevision: 7}); s.KeyBase64 != "/w==" || s.Lease != "ff" || s.ModRevision != 7 {
		t.Errorf("%+v", s)
	}
}
