package services

import (
	"cmp"
	"slices"
)

// maxUnion is how many ports an address with several lists of ports can have.
const maxUnion = 128

// fold merges items with the same address into one, with merge. It works in place.
//
// A pod's address may still be listed for the pod that had it before, so when some items are usable, the others are
// dropped. merge takes a single value from the first item that has it, and a negative condition only if all items have
// it.
func fold[T any](sorted []T, sameAddress func(a, b *T) bool, usable func(T) bool, merge func([]T) T) []T {
	out := sorted[:0]
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sameAddress(&sorted[n], &sorted[0]) {
			n++
		}
		same := sorted[:n]
		sorted = sorted[n:]
		if n == 1 {
			out = append(out, same[0])
			continue
		}
		if slices.ContainsFunc(same, usable) { // only these count
			same = slices.DeleteFunc(same, func(one T) bool { return !usable(one) })
		}
		out = append(out, merge(same))
	}
	return out
}

// foldBackends makes one backend of those with the same address. Only differing lists of ports take memory.
func foldBackends(sorted []Backend) []Backend {
	var u union
	return fold(sorted, func(a, b *Backend) bool { return a.IP == b.IP }, Backend.Usable, u.merge)
}

// foldEndpoints makes one endpoint of those with the same address.
func foldEndpoints(sorted []endpoint) []endpoint {
	return fold(sorted,
		func(a, b *endpoint) bool { return a.ip == b.ip },
		func(e endpoint) bool { return e.conditions.Usable() },
		func(same []endpoint) endpoint {
			e := same[0]
			for _, o := range same[1:] {
				e.node, e.zone, e.hostname = cmp.Or(e.node, o.node), cmp.Or(e.zone, o.zone), cmp.Or(e.hostname, o.hostname)
				e.conditions = e.conditions.and(o.conditions)
			}
			return e
		},
	)
}

// union merges several lists of ports.
type union struct {
	pool
	all   []Port // ports of one address; up to clean sorted and without duplicates
	clean int
}

func (u *union) merge(same []Backend) Backend {
	b := same[0]
	for _, o := range same[1:] {
		b.Hostname = cmp.Or(b.Hostname, o.Hostname)
		b.Zone = cmp.Or(b.Zone, o.Zone)
		b.Node = cmp.Or(b.Node, o.Node)
		b.Conditions = b.Conditions.and(o.Conditions)
	}
	if slices.ContainsFunc(same, func(o Backend) bool { return !slices.Equal(b.Ports, o.Ports) }) {
		b.Ports = u.ports(same)
	}
	return b
}

// ports returns the ports of all. If there are more than [maxUnion], which is not expected, only those of the first are
// used.
func (u *union) ports(same []Backend) []Port {
	u.all, u.clean = u.all[:0], 0
	for _, b := range same {
		u.all = append(u.all, b.Ports...)
		if len(u.all) > 2*max(u.clean, maxUnion) {
			u.compact()
		}
		if u.clean > maxUnion {
			return same[0].Ports
		}
	}
	if u.compact(); len(u.all) > maxUnion {
		return same[0].Ports
	}
	return u.list(u.all)
}

func (u *union) compact() {
	u.all = slices.Compact(sortPorts(u.all))
	u.clean = len(u.all)
}
