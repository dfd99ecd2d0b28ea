package wire

import (
	"bytes"
	"encoding/json"

	"github.com/mesh-agent/mesh-agent/internal/base/plainjson"
)

// members reads the members of a JSON object one by one, without building anything. Its text must be valid,
// like the text that encoding/json passes to UnmarshalJSON.
type members struct {
	rest       []byte
	key, value []byte // of the member that was read last; the key with its quotes
}

// membersOf returns the members of an object; false when the text is of another kind.
func membersOf(object []byte) (members, bool) {
	object = bytes.TrimSpace(object)
	if len(object) < 2 || object[0] != '{' {
		return members{}, false
	}
	return members{rest: object[1:]}, true
}

// next reads one member, and reports false at the end.
func (m *members) next() bool {
	m.rest = bytes.TrimLeft(m.rest, ", \t\r\n")
	if len(m.rest) == 0 || m.rest[0] != '"' {
		return false
	}
	m.key = m.cut(endOfString(m.rest, 0) + 1)
	m.rest = bytes.TrimLeft(m.rest, ": \t\r\n")
	m.value = m.cut(endOfValue(m.rest))
	return true
}

func (m *members) cut(n int) []byte {
	text := m.rest[:n]
	m.rest = m.rest[n:]
	return text
}

// count returns how many members follow.
func (m members) count() (n int) {
	for m.next() {
		n++
	}
	return n
}

// endOfValue returns the length of the value that a text begins with.
func endOfValue(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = endOfString(text, i); depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// costUnquote is the memory that encoding/json takes to read one string.
const costUnquote = 200

// unquote returns the text of a JSON string.
func (m *meter) unquote(quoted []byte) (string, error) {
	s := plainjson.NewScanner(quoted)
	if text, ok := s.Text(); ok && s.Done() {
		return string(text), nil
	}
	if err := m.take(costUnquote + 4*len(quoted)); err != nil {
		return "", err
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return text, err
}
