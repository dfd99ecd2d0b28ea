// Package records keeps a record of each key below a prefix, by name, in little memory, because a mesh has many
// keys. It is the common table of a reader and of a writer of a prefix. A Table belongs to one goroutine.
package records

import (
	"hash/maphash"
	"iter"
	"math/bits"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Record describes one key.
type Record[T any] struct {
	Name string
	Rev  int64  // mod revision of the value seen last
	Hash uint64 // of the value in force
	Size uint32 // bytes of the name and of the value seen last; only readers count them
	Cost uint32 // approximate memory of the value in force; only readers count it
	Obj  T      // further data; for a reader the value in force, nil when there is none
}

// blockSize is the number of records that are allocated at once. With the allocator's own 8 bytes, a block of a
// Set takes 2,048 bytes, which is a size class of the allocator.
const blockSize = 42

// Place is the location of a record, as long as it exists.
type Place uint32

// Table has the records of one prefix, by name. There is one for each key of a mesh, so the records take the
// most memory after the objects themselves. They are in blocks that never move. An index finds them, a hash
// table with open addressing. It has 32 bits for each slot, is at most three quarters full, and is the only
// part that is copied when it grows. A Go map takes 1.5 times the memory, and searches twice for a change.
type Table[T any] struct {
	seed   maphash.Seed
	index  []Place // linear probing from the name's hash: 1 + the place; 0 is free. The length is a power of two
	blocks []*[blockSize]Record[T]
	used   Bitset  // places with a record
	seen   Bitset  // those of them that were marked since the last ForgetSeen
	free   []Place // places whose record was removed
	n      int
}

// New returns an empty table, whose names are hashed with this seed.
func New[T any](seed maphash.Seed) *Table[T] {
	return &Table[T]{seed: seed, index: make([]Place, 8)}
}

// At returns the record at a place. It stays where it is until it is removed.
func (s *Table[T]) At(p Place) *Record[T] { return &s.blocks[p/blockSize][p%blockSize] }

// Find returns the place of the record with a name.
func (s *Table[T]) Find(name []byte) (p Place, known bool) {
	for i := s.home(maphash.Bytes(s.seed, name)); s.index[i] != 0; i = s.next(i) {
		if p := s.index[i] - 1; s.At(p).Name == string(name) {
			return p, true
		}
	}
	return 0, false
}

// FindString is [Table.Find] for a name that is a string.
func (s *Table[T]) FindString(name string) (p Place, known bool) {
	for i := s.home(maphash.String(s.seed, name)); s.index[i] != 0; i = s.next(i) {
		if p := s.index[i] - 1; s.At(p).Name == name {
			return p, true
		}
	}
	return 0, false
}

// home returns the slot at which the search for a name with this hash begins.
func (s *Table[T]) home(hash uint64) int { return int(hash & uint64(len(s.index)-1)) }
func (s *Table[T]) next(i int) int       { return (i + 1) & (len(s.index) - 1) }

// Add makes a record for a name that has none.
func (s *Table[T]) Add(name string) Place {
	if s.n++; 4*s.n > 3*len(s.index) {
		s.grow()
	}
	p := s.room()
	s.At(p).Name = name
	s.used.Set(p)
	s.enter(p)
	return p
}

func (s *Table[T]) room() Place {
	if last := len(s.free) - 1; last >= 0 {
		p := s.free[last]
		s.free = s.free[:last]
		return p
	}
	p := Place(s.n - 1) // none is free, so all before it are used
	if int(p)/blockSize == len(s.blocks) {
		s.blocks = append(s.blocks, new([blockSize]Record[T]))
	}
	return p
}

func (s *Table[T]) enter(p Place) {
	i := s.home(maphash.String(s.seed, s.At(p).Name))
	for s.index[i] != 0 {
		i = s.next(i)
	}
	s.index[i] = p + 1
}

func (s *Table[T]) grow() {
	s.index = make([]Place, 2*len(s.index))
	for p := range s.used.All() {
		s.enter(p)
	}
}

// Remove forgets a record.
func (s *Table[T]) Remove(p Place) {
	i := s.home(maphash.String(s.seed, s.At(p).Name))
	for s.index[i] != p+1 {
		i = s.next(i)
	}
	s.close(i)
	*s.At(p) = Record[T]{}
	s.used.Clear(p)
	s.seen.Clear(p)
	s.free = append(s.free, p)
	s.n--
}

// close frees a slot of the index and moves up later slots, so that each is still found from its home. Up to
// the next free slot, a slot whose home is at or before the gap moves into the gap, and leaves a new gap.
func (s *Table[T]) close(gap int) {
	for i := s.next(gap); s.index[i] != 0; i = s.next(i) {
		home := s.home(maphash.String(s.seed, s.At(s.index[i]-1).Name))
		mask := len(s.index) - 1
		if (i-home)&mask >= (i-gap)&mask {
			s.index[gap] = s.index[i]
			gap = i
		}
	}
	s.index[gap] = 0
}

// All iterates over the places of all records, in no order. The current record may be removed during the
// iteration.
func (s *Table[T]) All() iter.Seq[Place] { return s.used.All() }

// Newest returns the name of the key that was written last, among the records that meet a condition; empty when
// there is none.
func (s *Table[T]) Newest(is func(*Record[T]) bool) string {
	var newest string
	var rev int64
	for p := range s.All() {
		if r := s.At(p); is(r) && (r.Rev > rev || r.Rev == rev && r.Name < newest) {
			newest, rev = r.Name, r.Rev
		}
	}
	return newest
}

// Agrees reports whether a past has the same numbers of keys as the records that meet a condition: up to the past's last
// item, and in all.
func (s *Table[T]) Agrees(past kvstore.Past, is func(*Record[T]) bool) bool {
	last := ""
	if n := len(past.Items); n > 0 {
		last = string(past.Items[n-1].Key)
	}
	first, all := 0, int64(0)
	for p := range s.All() {
		r := s.At(p)
		if !is(r) {
			continue
		}
		all++
		if r.Name <= last {
			first++
		}
	}
	return all == past.Count && first == len(past.Items)
}

// Len returns the number of records.
func (s *Table[T]) Len() int { return s.n }

// Has reports whether there is a record at a place.
func (s *Table[T]) Has(p Place) bool { return s.used.Has(p) }

// MarkSeen notes that a list had the key of a record.
func (s *Table[T]) MarkSeen(p Place) { s.seen.Set(p) }

// IsSeen reports whether a record was marked.
func (s *Table[T]) IsSeen(p Place) bool { return s.seen.Has(p) }

// ForgetSeen removes all marks.
func (s *Table[T]) ForgetSeen() { clear(s.seen) }

// Bitset has one bit for each place. It grows when one is set.
type Bitset []uint64

// Has reports whether the bit of a place is set.
func (b Bitset) Has(p Place) bool {
	return int(p/64) < len(b) && b[p/64]&(1<<(p%64)) != 0
}

// Set sets the bit of a place.
func (b *Bitset) Set(p Place) {
	for int(p/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[p/64] |= 1 << (p % 64)
}

// Clear clears the bit of a place.
func (b Bitset) Clear(p Place) {
	if int(p/64) < len(b) {
		b[p/64] &^= 1 << (p % 64)
	}
}

// All iterates over the places whose bits are set. They may be cleared during the iteration.
func (b Bitset) All() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(Place(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
