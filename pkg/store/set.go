package store

import (
	"errors"
	"hash/maphash"
	"iter"
	"maps"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Decode turns a value into an object, or refuses it, preferably with a [wire.RejectError]. The name and the
// value are valid only during the call: the object must copy the parts that it keeps.
type Decode[T any] func(name string, value []byte) (*T, error)

// Change is the change of one key of a collection, as a domain table applies it. Old is nil for a creation, New
// is nil for a deletion, both are set for a modification. Name is the key without its prefix. The values are
// immutable and shared with the set that reported the change.
type Change[T any] struct {
	Name     string
	Old, New *T
}

type rejection struct {
	reason wire.Reason
	over   Over // for ReasonBudget
	hash   uint64
}

// maxExamples bounds the number of refusals whose error text is stored.
const maxExamples = 8

// Set is the pure core: no I/O, no clock, no goroutine, no lock.
type Set[T any] struct {
	seed     maphash.Seed
	records  *records.Table[*T]
	rejected map[string]rejection // by name: keys whose present value is refused
	reasons  map[wire.Reason]int  // how many of them for each reason; no zeros
	examples map[string]string    // by name: error texts of some of the rejected names
	inForce  int                  // records with an object
	listing  bool                 // between Begin and Done
	limits   Limits
	size     int64   // of all records
	left     leftOut // refused keys without a record, as of the last list
	leaving  leftOut // likewise, of the list under way
}

// NewSet returns an empty set.
func NewSet[T any]() *Set[T] {
	seed := maphash.MakeSeed()
	return &Set[T]{
		seed:     seed,
		records:  records.New[*T](seed),
		rejected: make(map[string]rejection),
		reasons:  make(map[wire.Reason]int),
		examples: make(map[string]string),
		left:     newLeftOut(),
		leaving:  newLeftOut(),
	}
}

// Recheck makes the next list decode every value again and report each as a change. The values in force stay
// until then. It is for a decoder that has changed, or when it is unknown whether all changes were applied.
func (s *Set[T]) Recheck() { s.seed = maphash.MakeSeed() }

// Begin starts a list. It abandons a list that was begun and not done: the values of that list stay, and no key
// is swept because of it.
func (s *Set[T]) Begin() {
	s.records.ForgetSeen()
	s.listing = true
	s.leaving = newLeftOut()
}

// Upsert takes the value of a key, from a list or from an event. An event that is not newer than the known
// revision, or a value equal to the one before, changes nothing. In a list the value alone decides: another
// etcd, or one that was restored from a backup, has other revisions for the same keys. ok reports whether ch is
// a change. err is the reason for a refusal; it is nil for a value that is already known as refused.
func (s *Set[T]) Upsert(name, value []byte, rev int64, decode Decode[T]) (ch Change[T], ok bool, err error) {
	p, known := s.records.Find(name)
	hash := maphash.Bytes(s.seed, value)
	if !known {
		if err := s.admit(name, value); err != nil {
			s.leaveOut(err)
			return ch, false, err
		}
		p = s.records.Add(string(name))
	} else if r := s.records.At(p); !s.listing && rev <= r.Rev {
		return ch, false, nil
	} else if s.knownValue(r, hash) {
		s.records.MarkSeen(p)
		r.Rev = rev
		return ch, false, nil
	}
	s.records.MarkSeen(p)
	r := s.records.At(p)
	r.Rev = rev
	if r.Obj != nil && r.Hash == hash {
		s.accept(r.Name) // the value in force is back after a refused one
		return ch, false, nil
	}
	obj, err := s.decode(r, value, decode)
	if err != nil {
		s.refuse(p, rejection{reason: reasonOf(err), over: overOf(err), hash: hash}, err)
		return ch, false, err
	}
	s.accept(r.Name)
	if r.Obj == nil {
		s.inForce++
	}
	ch = Change[T]{Name: r.Name, Old: r.Obj, New: obj}
	r.Hash, r.Obj = hash, obj
	return ch, true, nil
}

// knownValue reports whether the key had this value when it was seen last.
func (s *Set[T]) knownValue(r *records.Record[*T], hash uint64) bool {
	if refused, bad := s.rejected[r.Name]; bad {
		return refused.hash == hash && refused.over == 0 // there may be room now
	}
	return r.Obj != nil && r.Hash == hash
}

// Delete takes a deletion. A deletion that is not newer than the known revision of the key, or of an unknown
// key, is no change.
func (s *Set[T]) Delete(name []byte, rev int64) (ch Change[T], ok bool) {
	p, known := s.records.Find(name)
	if !known {
		s.left.less()
		return ch, false
	}
	if rev <= s.records.At(p).Rev {
		return ch, false
	}
	return s.forget(p)
}

func (s *Set[T]) forget(p records.Place) (ch Change[T], ok bool) {
	s.release(s.records.At(p))
	r := *s.records.At(p)
	s.size -= int64(r.Size)
	s.records.Remove(p)
	s.accept(r.Name)
	if r.Obj == nil {
		return ch, false
	}
	s.inForce--
	return Change[T]{Name: r.Name, Old: r.Obj}, true
}

// Done ends a complete list. It returns the deletions: of the keys that the list did not have, and of the
// values in force for keys that had a refused value in the list. The iteration must run to its end.
func (s *Set[T]) Done() iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		s.listing = false
		s.left = s.leaving
		for p := range s.records.All() {
			ch, ok := s.sweep(p)
			if ok && !yield(ch) {
				return
			}
		}
	}
}

func (s *Set[T]) sweep(p records.Place) (ch Change[T], ok bool) {
	if !s.records.IsSeen(p) {
		return s.forget(p)
	}
	r := s.records.At(p)
	if _, bad := s.rejected[r.Name]; !bad || r.Obj == nil {
		return ch, false
	}
	ch = Change[T]{Name: r.Name, Old: r.Obj}
	r.Obj = nil
	s.release(r)
	s.inForce--
	return ch, true
}

// Drain returns the deletions of all objects and forgets every key. The iteration must run to its end.
func (s *Set[T]) Drain() iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		s.listing = false
		for p := range s.records.All() {
			ch, ok := s.forget(p)
			if ok && !yield(ch) {
				return
			}
		}
		s.records = records.New[*T](s.seed)
		s.left, s.leaving = newLeftOut(), newLeftOut()
	}
}

// Len returns the number of objects in force.
func (s *Set[T]) Len() int { return s.inForce }

// Rejected returns the number of keys whose present value is refused. Keys that are refused and not remembered
// are counted as of the last list and the events since.
func (s *Set[T]) Rejected() int { return len(s.rejected) + s.leftOut().n }

// Rejections returns the numbers of refused keys by reason; nil when there are none.
func (s *Set[T]) Rejections() map[wire.Reason]int {
	all := maps.Clone(s.reasons)
	for reason, n := range s.leftOut().reasons {
		all[reason] += n
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Example returns a key whose present value is refused, and the reason; both are empty when there is no such
// key with a stored error text.
func (s *Set[T]) Example() (name, why string) {
	for n, w := range s.examples {
		if why == "" || n < name {
			name, why = n, w
		}
	}
	return name, why
}

func (s *Set[T]) reject(name string, r rejection, err error) {
	s.accept(name)
	s.rejected[name] = r
	s.reasons[r.reason]++
	s.leaving.over |= r.over
	s.left.over |= r.over
	if len(s.examples) < maxExamples {
		s.examples[name] = err.Error()
	}
}

// accept forgets that the key's value was refused, if it was.
func (s *Set[T]) accept(name string) {
	r, was := s.rejected[name]
	if !was {
		return
	}
	delete(s.rejected, name)
	delete(s.examples, name)
	if s.reasons[r.reason]--; s.reasons[r.reason] == 0 {
		delete(s.reasons, r.reason)
	}
}

// Known returns the number of keys, including those whose value is refused.
func (s *Set[T]) Known() int { return s.records.Len() }

// Newest returns the name of the key that was written last; empty when there is none.
func (s *Set[T]) Newest() string { return s.records.Newest(every) }

func every[T any](*records.Record[T]) bool { return true }

// Agrees reports whether the set equals a past state of a kvstore, for one key, or for all keys when the name is empty.
// Of all keys, it compares the first ones in ascending order, with their revisions and values, and the number of all.
// That takes one pass over the set.
func (s *Set[T]) Agrees(one string, past kvstore.Past) bool {
	for _, kv := range past.Items {
		p, known := s.records.Find(kv.Key)
		if !known {
			return false
		}
		if r := s.records.At(p); r.Rev != kv.ModRevision || !s.knownValue(r, maphash.Bytes(s.seed, kv.Value)) {
			return false
		}
	}
	if one != "" {
		return len(past.Items) == 1
	}
	return s.records.Agrees(past, every)
}

func reasonOf(err error) wire.Reason {
	if reject, ok := errors.AsType[*wire.RejectError](err); ok {
		return reject.Reason
	}
	return wire.ReasonMalformed
}
