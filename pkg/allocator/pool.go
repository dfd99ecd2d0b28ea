package allocator

import "math/rand/v2"

// IDPool knows which IDs of a range are available, and hands them out in random
// order. It is an array of all IDs of which a front part is available; only the
// entries that are not where they were at first are stored. An available one is
// elsewhere only while its own place is not in the front part. So every
// operation takes constant time, and memory is needed for the IDs that are not
// available, never for the range.
//
// An ID of the range is available, leased, or neither. A pool belongs to one
// goroutine. IDs outside the range are ignored.
type IDPool struct {
	min  uint64
	size uint64 // IDs in the range
	free uint64 // 0 <= free <= size: the entries before it are the available IDs

	entries map[uint64]uint64 // place to ID, less min, where it is another one
	places  map[uint64]uint64 // the reverse

	leased map[uint64]bool // by ID: it comes back when it is released
	random func(below uint64) uint64
}

// NewIDPool returns a pool in which every ID from min to max is available; 0 is
// no ID, so min is at least 1.
func NewIDPool(min, max uint64) *IDPool {
	return &IDPool{
		min: min, size: max - min + 1, free: max - min + 1,
		entries: make(map[uint64]uint64), places: make(map[uint64]uint64),
		leased: make(map[uint64]bool),
		random: rand.Uint64N,
	}
}

// Lease takes an available ID for an allocation that is under way; Use or
// Release ends that. It reports false when none is available.
func (p *IDPool) Lease() (uint64, bool) {
	if p.free == 0 {
		return NoID, false
	}
	entry := at(p.entries, p.random(p.free))
	p.take(entry)
	p.leased[p.min+entry] = true
	return p.min + entry, true
}

// Use ends the lease of an ID: the allocation has succeeded. It is available
// again after an Insert.
func (p *IDPool) Use(id uint64) { delete(p.leased, id) }

// Release ends the lease of an ID that was not used. It is available again,
// unless it was removed while it was leased.
func (p *IDPool) Release(id uint64) {
	comesBack := p.leased[id]
	delete(p.leased, id)
	if comesBack {
		p.put(id - p.min)
	}
}

// Insert makes an ID available; one that is leased, when it is released.
func (p *IDPool) Insert(id uint64) {
	if !p.inRange(id) || p.available(id) {
		return
	}
	if _, leased := p.leased[id]; leased {
		p.leased[id] = true
	} else {
		p.put(id - p.min)
	}
}

// Remove makes an ID unavailable: somebody has it. One that is leased stays
// leased and does not come back when it is released.
func (p *IDPool) Remove(id uint64) {
	if _, leased := p.leased[id]; leased {
		p.leased[id] = false
	} else if p.available(id) {
		p.take(id - p.min)
	}
}

// Available is how many IDs can be leased.
func (p *IDPool) Available() uint64 { return p.free }

func (p *IDPool) inRange(id uint64) bool { return id >= p.min && id-p.min < p.size }

func (p *IDPool) available(id uint64) bool {
	return p.inRange(id) && at(p.places, id-p.min) < p.free
}

// take moves an available entry behind the available ones.
func (p *IDPool) take(entry uint64) {
	p.free--
	p.swap(at(p.places, entry), p.free)
}

// put moves an entry that is not available to the end of the available ones,
// and then home who belongs there, and the entry.
func (p *IDPool) put(entry uint64) {
	end := p.free
	p.swap(at(p.places, entry), end)
	p.free++
	p.settle(end)
	p.settle(entry)
}

// settle moves an entry to its own place if both are in the available part.
func (p *IDPool) settle(entry uint64) {
	if place := at(p.places, entry); place < p.free && entry < p.free {
		p.swap(place, entry)
	}
}

func (p *IDPool) swap(i, j uint64) {
	a, b := at(p.entries, i), at(p.entries, j)
	p.set(i, b)
	p.set(j, a)
}

func (p *IDPool) set(place, entry uint64) {
	if place == entry {
		delete(p.entries, place)
		delete(p.places, entry)
		return
	}
	p.entries[place], p.places[entry] = entry, place
}

// at is what the map says of i; what it does not mention is where it was.
func at(m map[uint64]uint64, i uint64) uint64 {
	if v, ok := m[i]; ok {
		return v
	}
	return i
}
