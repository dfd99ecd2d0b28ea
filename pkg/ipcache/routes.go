package ipcache

import (
	"net/netip"

	"github.com/gaissmai/bart"
)

// routes finds winners by address. Nearly all are claims on a single address: those are in plain maps, which need a
// third of the time of a trie with a million addresses. Shorter prefixes, of which there are a few for each node, are
// in a routing table.
type routes struct {
	four    map[uint32]*Entry // separate from the others: half the size
	six     map[address]*Entry
	shorter bart.Table[*Entry]
}

func (r *routes) host(a address) *Entry {
	if a.is4() {
		return r.four[uint32(a.lo)]
	}
	return r.six[a]
}

func (r *routes) get(p place) *Entry {
	if p.host() {
		return r.host(p.at)
	}
	e, _ := r.shorter.Get(p.prefix())
	return e
}

func (r *routes) set(p place, e *Entry) {
	switch {
	case !p.host():
		r.shorter.Insert(p.prefix(), e)
	case p.at.is4():
		r.four[uint32(p.at.lo)] = e
	default:
		r.six[p.at] = e
	}
}

func (r *routes) remove(p place) {
	switch {
	case !p.host():
		r.shorter.Delete(p.prefix())
	case p.at.is4():
		r.four = without(r.four, uint32(p.at.lo))
	default:
		r.six = without(r.six, p.at)
	}
}

// without returns the map without the key. After the last key it returns a new map, since a map never frees the memory
// that it once used.
func without[K comparable](m map[K]*Entry, key K) map[K]*Entry {
	delete(m, key)
	if len(m) == 0 {
		return make(map[K]*Entry)
	}
	return m
}

// longest returns the winner of the longest prefix that covers the address, or nil.
func (r *routes) longest(a netip.Addr) *Entry {
	if e := r.host(pack(a)); e != nil {
		return e
	}
	e, _ := r.shorter.Lookup(a)
	return e
}

// covering calls visit with the winner of every prefix that covers the address, the longest first.
func (r *routes) covering(a netip.Addr, visit func(place, *Entry)) {
	at := pack(a)
	if e := r.host(at); e != nil {
		visit(place{at, hostBits}, e)
	}
	for p, e := range r.shorter.Supernets(netip.PrefixFrom(a, a.BitLen())) {
		visit(placeOf(p), e)
	}
}
