package allocator

import "math/rand/v2"

// IDPool has the available IDs of a range, and hands them out in random order. The available IDs are in a row without
// gaps. The place of an available ID is its distance from the least ID, if that place is inside the row. An available
// ID whose own place is after the end of the row has the place of an ID that is not available; only these places are
// stored. So every operation takes constant time. The memory depends on the number of IDs that are not available,
// never on the range. An ID of the range is available, leased, or neither. A pool belongs to one goroutine. IDs
// outside the range are ignored.
type IDPool struct {
	min  uint64
	size uint64 // IDs in the range
	free uint64 // 0 <= free <= size: the length of the row

	// IDs are counted from min here.
	row    map[uint64]uint64 // place to ID, where it is not the ID's own place
	places map[uint64]uint64 // the reverse
	taken  map[uint64]taken  // the IDs that are not available

	random func(below uint64) uint64
}

// taken is why an ID is not available.
type taken byte

const (
	takenUsed   taken = iota
	takenLeased       // leased, and available again when it is released
	takenGone         // leased, and removed meanwhile
)

// NewIDPool returns a pool in which every ID from min to max is available; 0 is
// no ID, so min is at least 1.
func NewIDPool(min, max uint64) *IDPool {
	return &IDPool{
		min: min, size: max - min + 1, free: max - min + 1,
		row: make(map[uint64]uint64), places: make(map[uint64]uint64), taken: make(map[uint64]taken),
		random: rand.Uint64N,
	}
}

// Lease takes an available ID for an allocation in progress. Use or Release ends the lease. It reports false when no
// ID is available.
func (p *IDPool) Lease() (uint64, bool) {
	if p.free == 0 {
		return NoID, false
	}
	n := at(p.row, p.random(p.free))
	p.take(n, takenLeased)
	return p.min + n, true
}

// Use ends the lease of an ID after a successful allocation. The ID becomes available again with Insert.
func (p *IDPool) Use(id uint64) {
	if p.inRange(id) && !p.available(id) {
		p.taken[id-p.min] = takenUsed
	}
}

// Release ends the lease of an ID that was not used. It is available again,
// unless it was removed while it was leased.
func (p *IDPool) Release(id uint64) {
	switch p.taken[id-p.min] {
	case takenLeased:
		p.add(id - p.min)
	case takenGone:
		p.taken[id-p.min] = takenUsed
	}
}

// Insert makes an ID available. A leased ID becomes available when it is released.
func (p *IDPool) Insert(id uint64) {
	switch {
	case !p.inRange(id) || p.available(id):
	case p.taken[id-p.min] == takenUsed:
		p.add(id - p.min)
	default:
		p.taken[id-p.min] = takenLeased
	}
}

// Remove makes an ID unavailable, because it is taken. A leased ID stays leased, and does not become available when
// it is released.
func (p *IDPool) Remove(id uint64) {
	switch {
	case !p.inRange(id):
	case p.available(id):
		p.take(id-p.min, takenUsed)
	case p.taken[id-p.min] == takenLeased:
		p.taken[id-p.min] = takenGone
	}
}

func (p *IDPool) inRange(id uint64) bool { return id >= p.min && id-p.min < p.size }

func (p *IDPool) available(id uint64) bool {
	_, taken := p.taken[id-p.min]
	return p.inRange(id) && !taken
}

// take removes an available ID from the row; the last ID of the row moves to its place.
func (p *IDPool) take(n uint64, why taken) {
	p.taken[n] = why
	place := at(p.places, n)
	p.free--
	last := at(p.row, p.free)
	p.put(n, n) // no stored place: its own place is after the row, or gets the last ID
	delete(p.row, p.free)
	if last != n {
		p.put(place, last)
	}
}

// add appends an ID to the row. Then the IDs whose own places are now inside the row move there: the ID whose own
// place is the new end, and the added ID.
func (p *IDPool) add(n uint64) {
	delete(p.taken, n)
	end := p.free
	p.free++
	p.put(end, n)
	p.goHome(end)
	p.goHome(n)
}

// goHome moves an available ID to its own place, in exchange with the ID there.
func (p *IDPool) goHome(n uint64) {
	if _, taken := p.taken[n]; taken || n >= p.free {
		return
	}
	if place, other := at(p.places, n), at(p.row, n); place != n {
		p.put(n, n)
		p.put(place, other)
	}
}

func (p *IDPool) put(place, n uint64) {
	if place == n {
		delete(p.row, place)
		delete(p.places, n)
		return
	}
	p.row[place], p.places[n] = n, place
}

// at returns the value of i in the map, or i if the map does not have it.
func at(m map[uint64]uint64, i uint64) uint64 {
	if v, ok := m[i]; ok {
		return v
	}
	return i
}
