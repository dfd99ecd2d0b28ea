// Package plainjson reads the plain part of JSON, several times faster than
// encoding/json and without allocating: no white space, no escapes, no text beyond
// ASCII, decimal integers without a sign. Every function reports false for anything
// else, well-formed or not, and the caller then starts again with encoding/json.
//
// Everything here is a pure function of its input; a [Scanner] is for one goroutine.
package plainjson

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"unsafe"
)

// Scanner reads a text from its beginning.
type Scanner struct {
	text []byte
	at   int
}

// NewScanner returns a scanner of the text, which it does not change.
func NewScanner(text []byte) Scanner { return Scanner{text: text} }

// Rest is the part of the text that was not read yet.
func (s *Scanner) Rest() []byte { return s.text[s.at:] }

// Done reports whether everything was read.
func (s *Scanner) Done() bool { return s.at == len(s.text) }

// Literal reads exactly this text, or nothing.
func (s *Scanner) Literal(text string) bool {
	if rest := s.text[s.at:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

// Text reads a string and returns the bytes between the quotes.
func (s *Scanner) Text() ([]byte, bool) {
	if !s.Literal(`"`) {
		return nil, false
	}
	b, i := s.text, s.at
	for ; len(b)-i >= 8; i += 8 {
		if stop := stops(binary.LittleEndian.Uint64(b[i:])); stop != 0 {
			return s.endText(i + bits.TrailingZeros64(stop)/8)
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return s.endText(i)
		}
	}
	return nil, false
}

// endText ends a string at a byte that must be a quote.
func (s *Scanner) endText(end int) ([]byte, bool) {
	start := s.at
	s.at = end + 1
	return s.text[start:end], s.text[end] == '"'
}

// stops marks those of eight bytes that are a quote, a backslash, a control character or not ASCII. The lowest bit
// that is set belongs to the first of them (the marks after it may be wrong); no bit is set when there is none.
func stops(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w - ones*' ') | w) & highs
}

// Addr reads an address, IPv4 within IPv6 as IPv4. It reports false for an invalid address or one with a zone.
func Addr(b []byte) (netip.Addr, bool) {
	// Without a copy, which only an error would keep.
	a, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(b), len(b)))
	return a.Unmap(), err == nil && a.Zone() == ""
}

// Number reads an integer from 0 to most, a value far below 2^60. The caller must check the next byte: a comma or a
// bracket cannot continue a number.
func (s *Scanner) Number(most uint64) (uint64, bool) {
	start := s.at
	var n uint64
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		n = 10*n + uint64(s.text[s.at]-'0')
		if s.at++; n > most {
			return 0, false
		}
	}
	digits := s.at - start
	return n, digits == 1 || digits > 1 && s.text[start] != '0'
}
