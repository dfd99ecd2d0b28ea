package ipcache

import (
	"cmp"
	"slices"
	"sync"
)

// IdentityIndex finds the prefixes that have an identity, without reading the others. It is made with the first query,
// and each query first takes in the changes since the previous one: a cache without queries has no cost for it. It
// takes 4 bytes for each IPv4 address, 24 for each other prefix, and 16 for each identity.
//
// The index has the prefixes that may have an identity; the snapshot then shows which of them have it. So prefixes need
// not be deleted from the index; old ones are left out when the index is rebuilt.
//
// Its methods may be called by any goroutine; they run one at a time.
type IdentityIndex struct {
	cache *Cache

	mu sync.Mutex // guards the fields below
	// The index includes every winner that existed between these revisions.
	from, to uint64
	made     bool
	runs     []run    // sorted by identity; the last one ends the one before
	fours    []uint32 // IPv4 addresses, by identity
	others   []place  // all prefixes that are not a single IPv4 address, by identity
	// later has the prefixes that were added after the index was built, by identity; laters counts them.
	later  map[uint32][]place
	laters int
	buffer []Change
}

// run is the position of the first prefixes of an identity.
type run struct {
	identity      uint32
	fours, others uint32
}

// minLater is how many later prefixes are always allowed; above it, the limit is one part in laterShare of the indexed
// prefixes.
const (
	minLater    = 1024
	laterShare  = 32
	changesRead = 1024 // at once
)

// NewIdentityIndex returns an index of the cache.
func NewIdentityIndex(c *Cache) *IdentityIndex { return &IdentityIndex{cache: c} }

// Find returns the winners of the snapshot that have one of the identities, in the order of [Snapshot.From]. It returns
// false when more than limit prefixes may have one, or when the snapshot is older than the index; the caller must then
// look at all prefixes.
func (x *IdentityIndex) Find(s *Snapshot, identities []uint32, limit int) ([]*Entry, bool) {
	candidates, ok := x.candidates(s, identities, limit)
	if !ok {
		return nil, false
	}
	slices.SortFunc(candidates, func(a, b place) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	wanted := make(map[uint32]bool, len(identities))
	for _, id := range identities {
		wanted[id] = true
	}
	found := make([]*Entry, 0, len(candidates))
	for _, p := range slices.Compact(candidates) {
		if e, is := s.winners.Get(&Entry{at: p.at, bits: p.bits}); is && wanted[e.identity] {
			found = append(found, e)
		}
	}
	return found, true
}

// candidates returns the places that may have the identities, in any order; false when there are too many, or when some
// may be missing.
func (x *IdentityIndex) candidates(s *Snapshot, identities []uint32, limit int) ([]place, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.update(s) {
		return nil, false
	}
	n := 0
	for _, id := range identities {
		first, end := x.runOf(id)
		n += int(end.fours-first.fours) + int(end.others-first.others) + len(x.later[id])
		if n > limit {
			return nil, false
		}
	}
	candidates := make([]place, 0, n)
	for _, id := range identities {
		first, end := x.runOf(id)
		for _, a := range x.fours[first.fours:end.fours] {
			candidates = append(candidates, place{address{0, mappedFour | uint64(a)}, hostBits})
		}
		candidates = append(candidates, x.others[first.others:end.others]...)
		candidates = append(candidates, x.later[id]...)
	}
	return candidates, true
}

// mappedFour is the upper part of the low word of an IPv4 address in its mapped form.
const mappedFour = 0xffff << 32

// four returns the IPv4 address of a place; false for other places.
func (p place) four() (uint32, bool) { return uint32(p.at.lo), p.host() && p.at.is4() }

// runOf returns the positions of the first prefixes of an identity, and of the next identity.
func (x *IdentityIndex) runOf(identity uint32) (first, end run) {
	i, known := slices.BinarySearchFunc(x.runs[:len(x.runs)-1], identity, func(r run, id uint32) int { return cmp.Compare(r.identity, id) })
	if !known {
		return run{}, run{}
	}
	return x.runs[i], x.runs[i+1]
}

// update takes in the changes up to the snapshot; false when the index was made of a later one.
func (x *IdentityIndex) update(s *Snapshot) bool {
	if !x.made {
		x.rebuild(s)
	}
	if s.revision < x.from {
		return false
	}
	if x.buffer == nil && x.to < s.revision {
		x.buffer = make([]Change, 0, changesRead)
	}
	for x.to < s.revision {
		changes, held := x.cache.Since(x.to, x.buffer)
		if !held || !x.note(changes) {
			x.rebuild(s)
			break
		}
		x.to += uint64(len(changes))
	}
	clear(x.buffer[:cap(x.buffer)]) // so that no entries are kept alive
	return true
}

// note takes in some changes; false when there are too many.
func (x *IdentityIndex) note(changes []Change) bool {
	for _, ch := range changes {
		e := ch.After
		if e == nil || ch.Before != nil && ch.Before.identity == e.identity {
			continue
		}
		if x.laters == max(minLater, (len(x.fours)+len(x.others))/laterShare) {
			return false
		}
		x.laters++
		x.later[e.identity] = append(x.later[e.identity], e.place())
	}
	return true
}

// rebuild makes the index of a snapshot: it counts the prefixes of each identity, and then allocates exactly the memory
// for them.
func (x *IdentityIndex) rebuild(s *Snapshot) {
	counts := make(map[uint32]run)
	s.winners.Scan(func(e *Entry) bool {
		r := counts[e.identity]
		if _, is := e.place().four(); is {
			r.fours++
		} else {
			r.others++
		}
		counts[e.identity] = r
		return true
	})
	x.runs = make([]run, 0, len(counts)+1)
	for id, r := range counts {
		x.runs = append(x.runs, run{id, r.fours, r.others})
	}
	slices.SortFunc(x.runs, func(a, b run) int { return cmp.Compare(a.identity, b.identity) })
	end := run{}
	for i := range x.runs {
		r := &x.runs[i]
		r.fours, r.others, end.fours, end.others = end.fours, end.others, end.fours+r.fours, end.others+r.others
		counts[r.identity] = *r // where its next prefix is written
	}
	x.runs = append(x.runs, end)
	x.fours, x.others = make([]uint32, end.fours), make([]place, end.others)
	s.winners.Scan(func(e *Entry) bool {
		r := counts[e.identity]
		if a, is := e.place().four(); is {
			x.fours[r.fours] = a
			r.fours++
		} else {
			x.others[r.others] = e.place()
			r.others++
		}
		counts[e.identity] = r
		return true
	})
	x.later, x.laters = make(map[uint32][]place), 0
	x.from, x.to, x.made = s.revision, s.revision, true
}
