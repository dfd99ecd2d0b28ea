package wire

import (
	"bytes"
	"unicode/utf8"
)

// shape counts the parts of a JSON text that determine the memory of encoding/json.
type shape struct {
	top    int // members of the outermost object
	second int // members of the objects in the outermost one
	deeper int // members of all other objects
	items  int // elements of all arrays
	depth  int // of the deepest nesting
	long   int // bytes of strings that are longer than shortText
	broken int // bytes of strings that are no UTF-8
}

// shapeOf counts in one pass and allocates nothing. It stops where the nesting is deeper than [maxNesting]. For
// a text that is not JSON the counts have no meaning; encoding/json builds nothing of it.
func shapeOf(text []byte) shape {
	var s shape
	var depth int
	var arrays uint64 // bit d: the open part at depth d is an array
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := endOfString(text, i)
			s.text(text[i+1 : max(end, i+1)])
			i = end
		case '{', '[':
			if depth++; depth > s.depth {
				s.depth = depth
			}
			if depth > maxNesting {
				return s
			}
			arrays &^= 1 << depth
			if text[i] == '[' {
				arrays |= 1 << depth
				if i+1 < len(text) && text[i+1] != ']' {
					s.items++
				}
			}
		case '}', ']':
			depth = max(depth-1, 0)
		case ',':
			if arrays>>depth&1 == 1 {
				s.items++
			}
		case ':':
			s.member(depth)
		}
	}
	return s
}

func (s *shape) text(text []byte) {
	if len(text) > shortText {
		s.long += len(text)
	}
	if !utf8.Valid(text) {
		s.broken += len(text)
	}
}

func (s *shape) member(depth int) {
	switch depth {
	case 0, 1:
		s.top++
	case 2:
		s.second++
	default:
		s.deeper++
	}
}

// endOfString returns the index of the closing quote of the string that begins at i; the last index of the text
// when there is none.
func endOfString(text []byte, i int) int {
	for start := i + 1; ; {
		n := bytes.IndexByte(text[start:], '"')
		if n < 0 {
			return len(text) - 1
		}
		end := start + n
		slashes := 0
		for end-1-slashes > i && text[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		start = end + 1
	}
}

// The memory that encoding/json takes for the parts of a text, including the data that other code builds from
// them. Each is an upper bound: slices and maps grow, and each wrong type of a part is an error of its own,
// although only the first is kept.
const (
	costField  = 112 // a member that is a field of a struct
	costMember = 280 // a member that is an entry of a map
	costItem   = 340 // an element of an array
	costLong   = 8   // a byte of a long string; the others include short ones
	costBroken = 24  // a byte of a string in which bytes become three, while buffers grow
)

// shortText is the length of a short string.
const shortText = 64

// costTexts returns the memory of the long and the broken strings.
func (s shape) costTexts() int { return s.long*costLong + s.broken*costBroken }

// takeJSON charges the memory that encoding/json takes for a text. The text is an object; the objects in it are
// maps or structs, and all deeper objects are structs.
func (m *meter) takeJSON(text []byte) error {
	s := shapeOf(text)
	if err := atMost(maxNesting, s.depth, "levels of nesting"); err != nil {
		return err
	}
	return m.take((s.top+s.deeper)*costField + s.second*costMember + s.items*costItem + s.costTexts())
}
