package store

import (
	"errors"
	"hash/maphash"
	"iter"
	"maps"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Decode turns a value into an object, or refuses it, preferably with a
// [wire.RejectError]. The name and the value are only lent: what the object
// keeps of them must be copied.
type Decode[T any] func(name string, value []byte) (*T, error)

// record is what is known of one key.
type record[T any] struct {
	rev  int64  // mod revision of the value seen last
	hash uint64 // of the value in force
	obj  *T     // the value in force; nil when there is none
	gen  uint32 // the list in which the key was seen last, or that was current when an event brought it
	bad  bool   // the value seen last was refused; rejected knows it
}

// rejection is what is known of a value that is refused.
type rejection struct {
	reason wire.Reason
	hash   uint64
}

// Set is the pure core: no I/O, no clock, no goroutine, no lock.
type Set[T any] struct {
	seed     maphash.Seed
	records  map[string]record[T]
	rejected map[string]rejection // by name: keys whose present value is refused
	reasons  map[wire.Reason]int  // how many of them for each reason; no zeros
	inForce  int                  // records with an object
	gen      uint32               // grows with every list
	listing  bool                 // between Begin and Done
}

// NewSet returns an empty set.
func NewSet[T any]() *Set[T] {
	return &Set[T]{
		seed:     maphash.MakeSeed(),
		records:  make(map[string]record[T]),
		rejected: make(map[string]rejection),
		reasons:  make(map[wire.Reason]int),
	}
}

// Begin starts a list. A list that was begun and not done is thereby given up:
// what it brought stays, and nothing is swept for it.
func (s *Set[T]) Begin() {
	s.gen++
	s.listing = true
}

// Upsert takes the value of a key, from a list or from an event. It decodes
// only what is new: an event that is not newer than what is known, and a value
// equal to the one before, cause nothing. In a list the value alone decides,
// never the revision: another etcd, or one that was restored from a backup, has
// other revisions for the same keys. ok tells whether ch is a change. err is
// the decoder's, for a value that is refused for the first time.
func (s *Set[T]) Upsert(name, value []byte, rev int64, decode Decode[T]) (ch Change[T], ok bool, err error) {
	r, known := s.records[string(name)]
	if known && !s.listing && rev <= r.rev {
		return ch, false, nil
	}
	hash := maphash.Bytes(s.seed, value)
	if known && s.knownValue(name, r, hash) {
		s.see(name, r, rev)
		return ch, false, nil
	}
	key := string(name)
	if known && r.obj != nil && r.hash == hash {
		s.accept(key) // back to the value in force after one that was refused
		s.records[key] = record[T]{rev: rev, hash: hash, obj: r.obj, gen: s.gen}
		return ch, false, nil
	}
	obj, err := decode(key, value)
	if err != nil {
		s.reject(key, rejection{reasonOf(err), hash})
		s.records[key] = record[T]{rev: rev, hash: r.hash, obj: r.obj, gen: s.gen, bad: true}
		return ch, false, err
	}
	s.accept(key)
	if r.obj == nil {
		s.inForce++
	}
	s.records[key] = record[T]{rev: rev, hash: hash, obj: obj, gen: s.gen}
	return Change[T]{Name: key, Old: r.obj, New: obj}, true, nil
}

// knownValue tells whether the key had this value when it was seen last.
func (s *Set[T]) knownValue(name []byte, r record[T], hash uint64) bool {
	if r.bad {
		return s.rejected[string(name)].hash == hash
	}
	return r.hash == hash
}

// see notes that a known, unchanged key was met again.
func (s *Set[T]) see(name []byte, r record[T], rev int64) {
	if r.gen != s.gen || r.rev != rev {
		r.gen, r.rev = s.gen, rev
		s.records[string(name)] = r
	}
}

// Delete takes a deletion. One that is older than what is known of the key, or
// of an unknown key, causes nothing.
func (s *Set[T]) Delete(name []byte, rev int64) (ch Change[T], ok bool) {
	r, known := s.records[string(name)]
	if !known || rev <= r.rev {
		return ch, false
	}
	return s.forget(string(name), r)
}

func (s *Set[T]) forget(name string, r record[T]) (ch Change[T], ok bool) {
	delete(s.records, name)
	s.accept(name)
	if r.obj == nil {
		return ch, false
	}
	s.inForce--
	return Change[T]{Name: name, Old: r.obj}, true
}

// Done ends a complete list. It gives the deletions: of the keys that the list
// did not have, and of the values in force for keys that it had with a value
// that is refused. The iteration must be run to its end.
func (s *Set[T]) Done() iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		s.listing = false
		for name, r := range s.records {
			ch, ok := s.sweep(name, r)
			if ok && !yield(ch) {
				return
			}
		}
	}
}

func (s *Set[T]) sweep(name string, r record[T]) (ch Change[T], ok bool) {
	if r.gen != s.gen {
		return s.forget(name, r)
	}
	if !r.bad || r.obj == nil {
		return ch, false
	}
	ch = Change[T]{Name: name, Old: r.obj}
	r.obj = nil
	s.records[name] = r
	s.inForce--
	return ch, true
}

// Drain withdraws everything and forgets every key. The iteration must be run
// to its end.
func (s *Set[T]) Drain() iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		s.listing = false
		for name, r := range s.records {
			ch, ok := s.forget(name, r)
			if ok && !yield(ch) {
				return
			}
		}
		clear(s.records)
	}
}

// Len is the number of objects in force.
func (s *Set[T]) Len() int { return s.inForce }

// Rejected is the number of keys whose present value is refused.
func (s *Set[T]) Rejected() int { return len(s.rejected) }

// Rejections counts the refused keys by reason. It is nil when there are none.
func (s *Set[T]) Rejections() map[wire.Reason]int {
	if len(s.reasons) == 0 {
		return nil
	}
	return maps.Clone(s.reasons)
}

func (s *Set[T]) reject(name string, r rejection) {
	s.accept(name)
	s.rejected[name] = r
	s.reasons[r.reason]++
}

// accept forgets that the key's value was refused, if it was.
func (s *Set[T]) accept(name string) {
	r, was := s.rejected[name]
	if !was {
		return
	}
	delete(s.rejected, name)
	if s.reasons[r.reason]--; s.reasons[r.reason] == 0 {
		delete(s.reasons, r.reason)
	}
}

// Known is the number of keys, those whose value is refused included.
func (s *Set[T]) Known() int { return len(s.records) }

// Newest is the name of the key that was written last; empty when there is none.
func (s *Set[T]) Newest() string {
	var newest string
	var rev int64
	for name, r := range s.records {
		if r.rev > rev || r.rev == rev && name < newest {
			newest, rev = name, r.rev
		}
	}
	return newest
}

// Agrees tells whether the set knows just what a kvstore had: of the keys from
// a name on (all, when it is empty) the first ones, by name and in ascending
// order, with their revisions and values, and the number of all of them. It
// takes one pass over the set, and no more than the given keys are compared.
func (s *Set[T]) Agrees(from string, past kvstore.Past) bool {
	last := ""
	for _, kv := range past.Items {
		r, known := s.records[string(kv.Key)]
		if !known || r.rev != kv.ModRevision || !s.knownValue(kv.Key, r, maphash.Bytes(s.seed, kv.Value)) {
			return false
		}
		last = string(kv.Key)
	}
	first, all := 0, int64(0)
	for name := range s.records {
		if name < from {
			continue
		}
		all++
		if name <= last {
			first++
		}
	}
	return all == past.Count && first == len(past.Items)
}

// All iterates over the objects in force, by name, in no order.
func (s *Set[T]) All() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for name, r := range s.records {
			if r.obj != nil && !yield(name, r.obj) {
				return
			}
		}
	}
}

func reasonOf(err error) wire.Reason {
	if reject, ok := errors.AsType[*wire.RejectError](err); ok {
		return reject.Reason
	}
	return wire.ReasonMalformed
}
