package allocator

import "strconv"

// spellings resolves a weakness of the format: the number of an identity is accepted with leading
// zeroes (wire.md §1.6), so that several keys of a cluster can give labels to one number. The
// plainly written key wins, then the least; when it goes, the next takes over. Only numbers that
// were ever written in another way are remembered: usually none.
type spellings map[identityKey]map[string]*Identity

type identityKey struct {
	id      uint32
	cluster string
}

// set takes the value that a kvstore name gives to a number (nil withdraws it)
// and returns the value that the number has then (nil is none). current is the
// value that it has so far.
func (s spellings) set(k identityKey, name string, value, current *Identity) *Identity {
	plain := isPlain(name, k.id)
	names, several := s[k]
	if !several {
		if plain {
			return value
		}
		names = make(map[string]*Identity)
		if current != nil {
			names[plainName(k.id)] = current
		}
		s[k] = names
	}
	if value != nil {
		names[name] = value
	} else {
		delete(names, name)
	}
	winner, done := best(names, plainName(k.id))
	if done {
		delete(s, k)
	}
	return winner
}

// best returns the winning value, and whether nothing has to be remembered any
// more: only the plain name is left, or none.
func best(names map[string]*Identity, plain string) (winner *Identity, done bool) {
	if v, ok := names[plain]; ok {
		return v, len(names) == 1
	}
	var least string
	for name, v := range names {
		if winner == nil || name < least {
			least, winner = name, v
		}
	}
	return winner, winner == nil
}

func plainName(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

func isPlain(name string, id uint32) bool {
	var buf [10]byte
	return string(strconv.AppendUint(buf[:0], uint64(id), 10)) == name
}
