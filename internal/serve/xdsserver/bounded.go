package xdsserver

import (
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
)

const (
	// maxAssignment bounds one assignment, in bytes, so that it fits into an answer ([maxAnswer]). One cluster must
	// not be able to break everything that a client follows.
	maxAssignment = 2 << 20
	// minAssignment is the size that an assignment may always have, in bytes, even when others have used all memory.
	minAssignment = 16 << 10
)

// Upper bounds of the size of a backend and of a locality in an assignment, without their texts, in bytes.
const (
	endpointOverhead = 28
	localityOverhead = 32
)

// place is a locality in a group.
type place struct {
	group         int
	cluster, zone string
}

// room is the space for backends in an assignment. Each cluster has the same share of it.
type room struct {
	share  int
	used   map[string]int
	places map[place]struct{}
}

// take takes space for one more backend, and reports whether there was enough.
func (r *room) take(group int, b *backends.Backend) bool {
	cost := endpointSize(b)
	at := place{group, b.Cluster, b.Zone}
	_, known := r.places[at]
	if !known {
		cost += localityOverhead + min(len(b.Cluster), maxText) + min(len(b.Zone), maxText)
	}
	if r.used[b.Cluster]+cost > r.share {
		return false
	}
	r.used[b.Cluster] += cost
	if !known {
		r.places[at] = struct{}{}
	}
	return true
}

// bounded keeps the best backends of each cluster, so that the assignment of the choice has at most this many bytes.
// It also returns how many backends it left out.
func bounded(c backends.Choice, most int) (left backends.Choice, out int) {
	if upperSize(c, most) <= most {
		return c, 0
	}
	r := &room{used: make(map[string]int), places: make(map[place]struct{})}
	for _, g := range c.Groups {
		for _, all := range [][]backends.Backend{g.Backends, g.Draining} {
			for i := range all {
				r.used[all[i].Cluster] = 0
			}
		}
	}
	r.share = most / max(1, len(r.used))
	take := func(group int, from []backends.Backend) (some []backends.Backend) {
		for i := range from {
			if r.take(group, &from[i]) {
				some = append(some, from[i])
			} else {
				out++
			}
		}
		return some
	}
	for i, g := range c.Groups {
		g.Backends, g.Draining = take(i, g.Backends), take(i, g.Draining)
		left.Groups = append(left.Groups, g)
	}
	return left, out
}

// upperSize is an upper bound of the size of an assignment: each backend counts with a locality of its own. It stops
// at the first size above most.
func upperSize(c backends.Choice, most int) (size int) {
	for _, g := range c.Groups {
		for _, all := range [][]backends.Backend{g.Backends, g.Draining} {
			for i := range all {
				b := &all[i]
				if size += endpointSize(b) + localityOverhead + min(len(b.Cluster), maxText) + min(len(b.Zone), maxText); size > most {
					return size
				}
			}
		}
	}
	return size
}

// endpointSize is an upper bound of the size of a backend, with both addresses of its pod, without the locality.
func endpointSize(b *backends.Backend) int {
	size := endpointOverhead + addressSize(b.IP)
	if b.Other.IsValid() {
		size += endpointOverhead + addressSize(b.Other)
	}
	return size
}

// addressSize is an upper bound of the length of an address as text.
func addressSize(ip netip.Addr) int {
	if ip.Is4() {
		return len("255.255.255.255")
	}
	return len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") + len(ip.Zone())
}
