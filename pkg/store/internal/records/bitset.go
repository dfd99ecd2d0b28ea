package records

import (
	"iter"
	"math/bits"
)

// Bitset has one bit for each place. It grows when one is set.
type Bitset []uint64

// Has tells whether the bit of a place is set.
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

// All iterates over the places whose bits are set. They may be cleared
// meanwhile.
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
