package wire

import (
	"encoding/binary"
	"math/bits"
)

// scanner reads the plain part of JSON that writers of IP entries produce: no
// white space, no escapes, no text beyond ASCII, decimal integers without a
// sign. Every method reports false for anything else, well-formed or not, and
// the caller then starts again with encoding/json.
type scanner struct {
	b []byte
	i int
}

// done tells whether everything was read.
func (s *scanner) done() bool { return s.i == len(s.b) }

// literal reads exactly this text, or nothing.
func (s *scanner) literal(text string) bool {
	if rest := s.b[s.i:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	s.i += len(text)
	return true
}

// text reads a string and returns what is between the quotes.
func (s *scanner) text() ([]byte, bool) {
	if !s.literal(`"`) {
		return nil, false
	}
	b, i := s.b, s.i
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
func (s *scanner) endText(end int) ([]byte, bool) {
	start := s.i
	s.i = end + 1
	return s.b[start:end], s.b[end] == '"'
}

// stops tells which of eight bytes is a quote, a backslash, a control character
// or beyond ASCII. The lowest bit that is set belongs to the first of them (the
// bytes after it may be mistaken), and none is set when there is none.
func stops(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w - ones*' ') | w) & highs
}

// number reads an integer from 0 to max, a value far below 2^60. What follows
// it is for the caller to check: no continuation of a number is a comma or a
// bracket.
func (s *scanner) number(max uint64) (uint64, bool) {
	start := s.i
	var n uint64
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		n = 10*n + uint64(s.b[s.i]-'0')
		if s.i++; n > max {
			return 0, false
		}
	}
	digits := s.i - start
	return n, digits == 1 || digits > 1 && s.b[start] != '0'
}
