package clientfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// Marker makes a file a client file, independent of its name (wire.md §3.1).
const Marker = "endpoints:"

// Overlooked returns the reason why a file that is probably meant to be a client file does not have the [Marker];
// empty when it is probably not meant to be one. Agents ignore a file without the Marker.
func Overlooked(content []byte) (why string) {
	if text, is := fromUTF16(content); is {
		if strings.Contains(strings.ToLower(text), Marker) {
			return "it is written in UTF-16: write it in UTF-8"
		}
		return ""
	}
	var keys map[string]any
	if yaml.Unmarshal(content, &keys) != nil {
		return ""
	}
	for key := range keys {
		switch {
		case !strings.EqualFold(key, strings.TrimSuffix(Marker, ":")):
		case key+":" != Marker:
			return fmt.Sprintf("its option %q has capital letters: write %q", key, Marker)
		default: // as in JSON, or with a space
			return fmt.Sprintf("its option endpoints is not written as %q: write it without quotes, and the colon at once", Marker)
		}
	}
	return ""
}

// fromUTF16 decodes a UTF-16 text. It recognises a byte order mark, and the zero bytes of a text in Latin letters.
func fromUTF16(content []byte) (text string, is bool) {
	order := binary.ByteOrder(binary.LittleEndian)
	switch {
	case len(content) < 4 || len(content)%2 != 0:
		return "", false
	case bytes.HasPrefix(content, []byte{0xfe, 0xff}), content[0] == 0 && content[2] == 0:
		order = binary.BigEndian
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}), content[1] == 0 && content[3] == 0:
	default:
		return "", false
	}
	units := make([]uint16, len(content)/2)
	for i := range units {
		units[i] = order.Uint16(content[2*i:])
	}
	return string(utf16.Decode(units)), true
}

// Documents returns the number of YAML documents in a file. Only the first one counts.
func Documents(content []byte) int {
	n, something := 0, false
	for line := range bytes.Lines(content) {
		switch text := bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("---")):
			something = false
		case len(text) > 0 && text[0] != '#' && !something:
			n, something = n+1, true
		}
	}
	return n
}
