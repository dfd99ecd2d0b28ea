package ipcache

import (
	"math"

	"github.com/tidwall/btree"
)

// claimSet is a set of claims in the order of their places, and at one place the strongest first. One place may have
// hundreds of thousands, even of one cluster: a CIDR with many different host bits, or an address that many nodes have.
// So operations for every claim must not go through all claims at its place.
type claimSet[T interface{ claim() *Entry }] struct {
	tree *btree.BTreeG[T]
	of   func(*Entry) T // returns a search key for the claim
}

func newClaimSet[T interface{ claim() *Entry }](of func(*Entry) T) claimSet[T] {
	less := func(a, b T) bool { return a.claim().before(b.claim()) }
	return claimSet[T]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), of}
}

func (e *Entry) claim() *Entry { return e }

// before orders claims by place, then by strength, the stronger first.
func (e *Entry) before(o *Entry) bool {
	if p, q := e.place(), o.place(); p != q {
		return p.before(q)
	}
	return e.Compare(o) < 0
}

// strongest returns a search key before every claim at a place.
func strongest(p place) *Entry {
	return &Entry{at: p.at, bits: p.bits, source: math.MaxUint8, cluster: &Claimant{}}
}

// at calls visit with the claims at a place, starting at from.
func (s *claimSet[T]) at(from *Entry, visit func(T) bool) {
	p := from.place()
	s.tree.Ascend(s.of(from), func(one T) bool { return one.claim().place() == p && visit(one) })
}

// groups calls visit with the strongest claim of each cluster, source and kind at a place, without going through the
// others.
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

// behindGroup returns a search key after all claims of the cluster that have the source and the kind of this one, and
// before all others.
func (e *Entry) behindGroup() *Entry {
	p := e.place()
	next := &Claimant{Name: e.cluster.Name + "\x00", ID: e.cluster.ID}
	return &Entry{at: p.at, bits: p.bits, source: e.source, kind: e.kind, cluster: next}
}

// MaxReported is up to how many claims on one prefix are reported individually. If there are more, only the strongest
// of each cluster, source and kind is reported.
const MaxReported = 128

// report calls visit with the claims at a place that are reported, and returns how many these are, and whether these
// are all.
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
