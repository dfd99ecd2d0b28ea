package ipcache

import (
	"math"

	"github.com/tidwall/btree"
)

// claimSet has claims in the order of their places, and at one place the strongest
// first. There may be hundreds of thousands at one place, of one cluster even: a CIDR
// with as many different host bits, an address that as many nodes have. So what is
// done for every claim must not go through all at its place.
type claimSet[T interface{ claim() *Entry }] struct {
	tree *btree.BTreeG[T]
	of   func(*Entry) T // stands for the claim in a search
}

func newClaimSet[T interface{ claim() *Entry }](of func(*Entry) T) claimSet[T] {
	less := func(a, b T) bool { return a.claim().before(b.claim()) }
	return claimSet[T]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), of}
}

func (e *Entry) claim() *Entry { return e }

// before orders claims by place, then the stronger first.
func (e *Entry) before(o *Entry) bool {
	if p, q := e.place(), o.place(); p != q {
		return p.before(q)
	}
	return e.Compare(o) < 0
}

// strongest is before every claim at a place.
func strongest(p place) *Entry {
	return &Entry{at: p.at, bits: p.bits, source: math.MaxUint8, cluster: &Cluster{}}
}

// at calls visit with the claims at a place, from one on.
func (s *claimSet[T]) at(from *Entry, visit func(T) bool) {
	p := from.place()
	s.tree.Ascend(s.of(from), func(one T) bool { return one.claim().place() == p && visit(one) })
}

// groups calls visit with the strongest claim of each cluster, of each source and
// kind, at a place, without going through the others.
func (s *claimSet[T]) groups(p place, visit func(T) bool) {
	from, more := strongest(p), s.tree.Len() > 0
	for more {
		more = false
		s.at(from, func(one T) bool {
			if more = visit(one); more {
				from = one.claim().behindGroup()
			}
			return false
		})
	}
}

// behindGroup is behind all claims of the cluster that have the source and the kind of
// this one, and before all others.
func (e *Entry) behindGroup() *Entry {
	p := e.place()
	next := &Cluster{Name: e.cluster.Name + "\x00", ID: e.cluster.ID}
	return &Entry{at: p.at, bits: p.bits, source: e.source, kind: e.kind, cluster: next}
}

// MaxReported is how many claims on one prefix are reported one by one. Of more the
// strongest of each cluster, of each source and kind, is reported.
const MaxReported = 128

// report calls visit with the claims at a place that are reported, and returns how many
// those are, and whether these are all.
func (s *claimSet[T]) report(p place, visit func(T)) (n int, all bool) {
	first := make([]T, 0, 4)
	s.at(strongest(p), func(one T) bool {
		first = append(first, one)
		return len(first) <= MaxReported
	})
	if all = len(first) <= MaxReported; all {
		for _, one := range first {
			visit(one)
		}
		return len(first), true
	}
	s.groups(p, func(one T) bool { visit(one); n++; return true })
	return n, false
}
