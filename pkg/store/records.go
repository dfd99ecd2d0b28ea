package store

import (
	"hash/maphash"
	"iter"
	"math/bits"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// record is what is known of one key.
type record[T any] struct {
	name string
	rev  int64  // mod revision of the value seen last
	hash uint64 // of the value in force
	size uint32 // bytes of the name and of the value seen last; a Set's alone
	cost uint32 // what the value in force takes in memory, about; likewise
	obj  T      // what else there is: in a Set the value in force, nil when there is none
}

// blockSize is how many records are allocated at once: with the allocator's own
// 8 bytes those of a Set take 2,048, which is a size that it has.
const blockSize = 42

// place is where a record is, as long as it exists.
type place uint32

// records are those of a Set or a ledger, by name. There is one for each key of a mesh, so
// they are the largest thing in memory beside the objects themselves. They lie in
// blocks that never move; what finds them is 32 bits in a table of open addressing,
// which is at most three quarters full and all that is copied when it grows. A map
// takes half as much again for the same, and two searches for a change.
type records[T any] struct {
	seed   maphash.Seed
	index  []place // linear probing from the name's hash: 1 + the place; 0 is free. A power of two
	blocks []*[blockSize]record[T]
	used   bitset  // places with a record
	seen   bitset  // those of them that were met since the last forgetSeen
	free   []place // places that had one
	n      int
}

func newRecords[T any](seed maphash.Seed) *records[T] {
	return &records[T]{seed: seed, index: make([]place, 8)}
}

// at returns the record at a place. It stays where it is until it is removed.
func (s *records[T]) at(p place) *record[T] { return &s.blocks[p/blockSize][p%blockSize] }

// find returns the place of the record.
func (s *records[T]) find(name []byte) (p place, known bool) {
	for i := s.home(maphash.Bytes(s.seed, name)); s.index[i] != 0; i = s.next(i) {
		if p := s.index[i] - 1; s.at(p).name == string(name) {
			return p, true
		}
	}
	return 0, false
}

// findText is find for a name that is a string.
func (s *records[T]) findText(name string) (p place, known bool) {
	for i := s.home(maphash.String(s.seed, name)); s.index[i] != 0; i = s.next(i) {
		if p := s.index[i] - 1; s.at(p).name == name {
			return p, true
		}
	}
	return 0, false
}

// home is where the search for a name with this hash begins.
func (s *records[T]) home(hash uint64) int { return int(hash & uint64(len(s.index)-1)) }
func (s *records[T]) next(i int) int       { return (i + 1) & (len(s.index) - 1) }

// add makes a record for a name that has none.
func (s *records[T]) add(name string) place {
	if s.n++; 4*s.n > 3*len(s.index) {
		s.grow()
	}
	p := s.room()
	s.at(p).name = name
	s.used.set(p)
	s.enter(p)
	return p
}

// room is a place without a record.
func (s *records[T]) room() place {
	if last := len(s.free) - 1; last >= 0 {
		p := s.free[last]
		s.free = s.free[:last]
		return p
	}
	p := place(s.n - 1) // none is free, so all before it are used
	if int(p)/blockSize == len(s.blocks) {
		s.blocks = append(s.blocks, new([blockSize]record[T]))
	}
	return p
}

// enter puts a record into the index.
func (s *records[T]) enter(p place) {
	i := s.home(maphash.String(s.seed, s.at(p).name))
	for s.index[i] != 0 {
		i = s.next(i)
	}
	s.index[i] = p + 1
}

func (s *records[T]) grow() {
	s.index = make([]place, 2*len(s.index))
	for p := range s.used.all() {
		s.enter(p)
	}
}

// remove forgets a record.
func (s *records[T]) remove(p place) {
	i := s.home(maphash.String(s.seed, s.at(p).name))
	for s.index[i] != p+1 {
		i = s.next(i)
	}
	s.close(i)
	*s.at(p) = record[T]{}
	s.used.clear(p)
	s.seen.clear(p)
	s.free = append(s.free, p)
	s.n--
}

// close frees a slot of the index and moves those behind it up, so that each is
// still found from its home: up to the next free slot, whatever has its home at
// or before the gap goes into it, and leaves a gap itself.
func (s *records[T]) close(gap int) {
	for i := s.next(gap); s.index[i] != 0; i = s.next(i) {
		home := s.home(maphash.String(s.seed, s.at(s.index[i]-1).name))
		mask := len(s.index) - 1
		if (i-home)&mask >= (i-gap)&mask {
			s.index[gap] = s.index[i]
			gap = i
		}
	}
	s.index[gap] = 0
}

// all iterates over the places of all records, in no order. The one at hand may
// be removed meanwhile.
func (s *records[T]) all() iter.Seq[place] { return s.used.all() }

// newest is the name of the key that was written last, of the records that meet a
// condition; empty when there is none.
func (s *records[T]) newest(is func(*record[T]) bool) string {
	var newest string
	var rev int64
	for p := range s.all() {
		if r := s.at(p); is(r) && (r.rev > rev || r.rev == rev && r.name < newest) {
			newest, rev = r.name, r.rev
		}
	}
	return newest
}

// first tells whether the items of a past are as many as there are records from a
// name on up to the last of these items, and its count as there are from that
// name on in all, of those that meet a condition.
func (s *records[T]) first(from string, past kvstore.Past, is func(*record[T]) bool) bool {
	last := ""
	if n := len(past.Items); n > 0 {
		last = string(past.Items[n-1].Key)
	}
	first, all := 0, int64(0)
	for p := range s.all() {
		r := s.at(p)
		if r.name < from || !is(r) {
			continue
		}
		all++
		if r.name <= last {
			first++
		}
	}
	return all == past.Count && first == len(past.Items)
}

// see notes that a record was met.
func (s *records[T]) see(p place) { s.seen.set(p) }

// forgetSeen makes all records ones that were not met yet.
func (s *records[T]) forgetSeen() { clear(s.seen) }

// bitset has one bit for each place. It grows when one is set.
type bitset []uint64

func (b bitset) has(p place) bool {
	return int(p/64) < len(b) && b[p/64]&(1<<(p%64)) != 0
}

func (b *bitset) set(p place) {
	for int(p/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[p/64] |= 1 << (p % 64)
}

func (b bitset) clear(p place) {
	if int(p/64) < len(b) {
		b[p/64] &^= 1 << (p % 64)
	}
}

// all iterates over the places whose bits are set. They may be cleared
// meanwhile.
func (b bitset) all() iter.Seq[place] {
	return func(yield func(place) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(place(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
