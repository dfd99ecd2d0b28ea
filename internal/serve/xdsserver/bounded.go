package xdsserver

import (
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
)

const (
	// maxAssignment bounds one assignment, in bytes, so that an answer has room for it ([maxAnswer]). One
	// cluster must not be able to break everything that a client follows.
	maxAssignment = 2 << 20
	// minAssignment has room in any case, also when others have taken all memory.
	minAssignment = 16 << 10
)

// What a backend and a locality take in an assignment at the most, without their texts, in bytes.
const (
	endpointOverhead = 28
	localityOverhead = 32
)

// place is a locality of a group.
type place struct {
	group         int
	cluster, zone string
}

// room is what there is for backends in an assignment, by cluster: all have the same.
type room struct {
	share  int
	used   map[string]int
	places map[place]struct{}
}

// take reports whether there is room for one more backend, and takes it.
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

// bounded leaves so many backends of each cluster in a choice, best first, that their assignment has at most
// so many bytes, and says how many it left out.
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

// upperSize is the size of the assignment of a choice if each backend had a locality of its own, or some size
// beyond most.
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

// endpointSize is how long a backend is at the most, with both addresses of its pod.
func endpointSize(b *backends.Backend) int {
	size := endpointOverhead + addressSize(b.IP)
	if b.Other.IsValid() {
		size += endpointOverhead + addressSize(b.Other)
	}
	return size
}

// addressSize is how long the text of an address is at the most.
func addressSize(ip netip.Addr) int {
	if ip.Is4() {
		return len("255.255.255.255")
	}
	return len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") + len(ip.Zone())
}
