// Package safetext writes JSON and YAML that is safe to show in a terminal. Names and messages come from other
// clusters: control characters (C0, DEL, C1), those that turn the direction of text, line separators and code points
// that are no characters are escaped in strings, so that readers decode the original strings.
//
// It has no state; everything may be called by any goroutine.
package safetext

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// isUnsafe reports whether a character is escaped. Those below a space are, too, by package json.
func isUnsafe(r rune) bool {
	switch {
	case r < 0x7f:
		return false
	case r <= 0x9f: // DEL and C1
		return true
	case r == '\u2028', r == '\u2029': // where lines end, for some
		return true
	case r == '\ufeff', r == '\ufffe', r == '\uffff': // no reader of YAML takes them
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

// IsControl reports whether a character changes how the text around it is read or shown: control characters, also
// tabs and line breaks, and all others that JSON and YAML escape here.
func IsControl(r rune) bool { return r < ' ' || isUnsafe(r) }

// writer escapes JSON on its way to w. Each of its writes has whole characters, as those
// of a json.Encoder have.
type writer struct{ w io.Writer }

func (w writer) Write(text []byte) (int, error) {
	if n, err := w.w.Write(escape(text)); err != nil {
		return min(n, len(text)), err
	}
	return len(text), nil
}

// JSON is like json.Marshal. It leaves <, > and & as they are, and puts each level
// on lines of its own when indent is not empty.
func JSON(v any, indent string) ([]byte, error) {
	text, err := marshal(v, indent)
	return escape(text), err
}

func marshal(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// escape escapes JSON. Without anything to escape, it returns the text itself.
func escape(text []byte) []byte {
	from := suspect(text)
	if from == len(text) {
		return text
	}
	var out []byte
	begun := 0 // up to here text is in out
	for i := from; i < len(text); {
		if text[i] < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if isUnsafe(r) {
			out = append(out, text[begun:i]...)
			out = fmt.Appendf(out, `\u%04x`, r) // all of them have 16 bits
			begun = i + size
		}
		i += size
	}
	if begun == 0 {
		return text
	}
	return append(out, text[begun:]...)
}

// suspect is where there may be something to escape at the earliest. Nearly all that
// is written has nothing: it is looked at eight bytes at a time.
func suspect(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if w := binary.LittleEndian.Uint64(text[i:]); (w|(w+ones))&highs != 0 { // a byte is 0x7f or more
			return i
		}
	}
	for ; i < len(text); i++ {
		if text[i] >= 0x7f {
			return i
		}
	}
	return i
}

// YAML is like yaml.Marshal of sigs.k8s.io. That cannot write what package yaml does
// not read, such as C1, and leaves other characters as they are: a string that has
// any to escape is written as in JSON, which is YAML, too.
func YAML(v any) ([]byte, error) {
	text, err := marshal(v, "")
	if err != nil {
		return nil, err
	}
	if !hasEscapes(escape(text)) {
		return yaml.JSONToYAML(text)
	}
	word := "escaped0x" // nothing else contains it
	for n := 1; bytes.Contains(text, []byte(word)); n++ {
		word = fmt.Sprintf("escaped%dx", n)
	}
	var names []string // each with the text in whose place it is while YAML is made of the rest
	replaced := jsonString().ReplaceAllFunc(text, func(s []byte) []byte {
		safe := escape(s)
		if !hasEscapes(safe) {
			return s
		}
		name := fmt.Sprintf("%s%dx", word, len(names)/2)
		names = append(names, name, string(safe))
		return strconv.AppendQuote(nil, name)
	})
	out, err := yaml.JSONToYAML(replaced)
	return []byte(strings.NewReplacer(names...).Replace(string(out))), err
}

// hasEscapes reports whether JSON has characters that are escaped by their numbers, or
// something that looks so.
func hasEscapes(text []byte) bool { return bytes.Contains(text, []byte(`\u`)) }

func jsonString() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) }

// Encoder writes JSON values, escaped and a line each, and leaves HTML as it is.
func Encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(writer{w})
	e.SetEscapeHTML(false)
	return e
}

// FileName is a text as part of a file name: each character except the letters and digits of ASCII, hyphens,
// underscores and dots becomes an underscore.
func FileName(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			return c
		}
		return '_'
	}, text)
}
