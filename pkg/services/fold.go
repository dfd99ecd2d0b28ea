package services

import (
	"cmp"
	"slices"
)

// maxUnion bounds the ports of an address that is listed with different ones.
const maxUnion = 128

// fold makes one backend of those with one address. It works in place, and takes
// memory for ports alone: lists of ports that differ become one, which addresses
// share as far as a pool goes.
//
// A pod's address may still be listed for the pod that had it before, so entries
// that are usable stand alone beside those that are not. Of what only one can say
// the first one says it.
func fold(sorted []Backend) []Backend {
	out := sorted[:0]
	var u union
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].IP == sorted[0].IP {
			n++
		}
		out = append(out, u.fold(sorted[:n]))
		sorted = sorted[n:]
	}
	return out
}

// union makes one list of several lists of ports.
type union struct {
	pool
	all   []Port // those of one address; sorted and without duplicates up to clean
	clean int
}

// fold makes one backend of those with one address.
func (u *union) fold(same []Backend) Backend {
	if len(same) > 1 && slices.ContainsFunc(same, Backend.Usable) {
		same = slices.DeleteFunc(same, func(b Backend) bool { return !b.Usable() })
	}
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

// ports returns the ports of all. Where they are more than [maxUnion], which
// nobody has, those of the first alone count.
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
