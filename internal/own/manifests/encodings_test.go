package manifests

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// utf16Of is a text as editors of Windows write it, with a byte order mark.
func utf16Of(order binary.AppendByteOrder, text string) (b []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

// TestEncodings: a byte order mark says what a file is, in YAML and JSON alike.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const (
		inYAML = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"
		inJSON = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}`
	)
	all := kinds(new(local.Cluster))
	for text, isJSON := range map[string]bool{inYAML: false, inJSON: true} {
		for name, content := range map[string][]byte{
			"UTF-8":           []byte(text),
			"UTF-8, marked":   []byte("\ufeff" + text),
			"UTF-16, little":  utf16Of(binary.LittleEndian, text),
			"UTF-16, big":     utf16Of(binary.BigEndian, text),
			"UTF-16, with CR": utf16Of(binary.LittleEndian, text+"\r\n"),
		} {
			if got := read(all, content, isJSON); len(got.documents) != 2 || len(got.bad) > 0 {
				t.Errorf("%s, JSON %t: %d documents, %v", name, isJSON, len(got.documents), got.bad)
			}
		}
	}
}
