package store

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Limits is what the keys below one prefix may cost (pkg/budget). In each field the
// zero value is no bound.
type Limits struct {
	budget.Share                 // keys and bytes
	Value        int64           // bytes of a value
	List         time.Duration   // that a list may take, without the time in which it waits for others
	Events       *rate.Limiter   // of the events of all resources of a cluster
	Memory       *budget.Account // counts what the values in force take, as [Costs] says; nil does not
}

// Costs is implemented by values that know about how many bytes they take in memory, with
// what follows from them in the tables. For others three times the bytes of the key and the
// encoded value are assumed.
type Costs interface{ Cost() int }

func costOf(value any, size uint32) uint32 {
	const least = 128 // the record
	if c, is := value.(Costs); is {
		return uint32(min(least+c.Cost(), math.MaxInt32)) //nolint:gosec // in the range
	}
	return min(least+3*size, math.MaxInt32)
}

// LimitsOf returns the limits of one resource of a cluster with this budget. The
// events of all resources share a limiter.
func LimitsOf(b budget.Budget, r wire.Resource, events *rate.Limiter) Limits {
	return Limits{Share: b.Share(r), Value: b.Value, List: b.List, Events: events}
}

// Over says which limits of keys were exceeded; zero for none.
type Over uint8

// The limits.
const (
	OverKeys Over = 1 << iota
	OverBytes
	OverValue
	OverMemory
)

// Names are the settings that say how much there may be, as pkg/budget names them.
func (o Over) Names() []string {
	var names []string
	for i, name := range []string{"keys", "bytes", "value", "memory"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String lists them.
func (o Over) String() string { return strings.Join(o.Names(), ", ") }

type overError struct {
	over Over
	text string
}

func (e *overError) Error() string { return e.text }

func overBudget(over Over, format string, args ...any) error {
	return &wire.RejectError{Reason: wire.ReasonBudget, Err: &overError{over, fmt.Sprintf(format, args...)}}
}

func overOf(err error) Over {
	if e, is := errors.AsType[*overError](err); is {
		return e.over
	}
	return 0
}

func (s *Set[T]) admit(name, value []byte) error {
	l := s.limits
	if len(name) > wire.MaxName {
		return &wire.RejectError{Reason: wire.ReasonTooLarge, Err: fmt.Errorf("the name has %d bytes, the limit is %d", len(name), wire.MaxName)}
	}
	switch {
	case l.Keys > 0 && s.records.Len() >= l.Keys:
		return overBudget(OverKeys, "there are %d keys already", s.records.Len())
	case l.Bytes > 0 && s.size+int64(len(name)+len(value)) > l.Bytes:
		return overBudget(OverBytes, "%d bytes more than the %d that there are", len(name)+len(value), s.size)
	}
	return nil
}

// decode decodes a value that fits into the limits, and counts it.
func (s *Set[T]) decode(r *records.Record[*T], value []byte, decode Decode[T]) (*T, error) {
	size, l := uint32(len(r.Name)+len(value)), s.limits
	grows := s.size + int64(size) - int64(r.Size)
	switch {
	case l.Value > 0 && int64(len(value)) > l.Value:
		return nil, overBudget(OverValue, "the value has %d bytes, the limit is %d", len(value), l.Value)
	case l.Bytes > 0 && grows > l.Bytes && size > r.Size:
		return nil, overBudget(OverBytes, "with it there would be %d bytes, the limit is %d", grows, l.Bytes)
	}
	s.size, r.Size = grows, size
	if l.Memory == nil {
		return decode(r.Name, value)
	}
	if !l.Memory.Fits(int64(size) - int64(r.Cost)) { // it takes more than its bytes: that need not be read to know
		return nil, overMemory(size)
	}
	obj, err := decode(r.Name, value)
	if err != nil {
		return nil, err
	}
	cost := costOf(obj, size)
	if !l.Memory.Add(int64(cost) - int64(r.Cost)) {
		return nil, overMemory(cost)
	}
	r.Cost = cost
	return obj, nil
}

func overMemory(n uint32) error {
	return overBudget(OverMemory, "it needs at least %d bytes of memory, and the share of its cluster in --remote-memory has no room for them", n)
}

// release gives back the memory of a value that is not in force any more.
func (s *Set[T]) release(r *records.Record[*T]) {
	s.limits.Memory.Add(-int64(r.Cost))
	r.Cost = 0
}

// Refused keys are remembered up to a bound, so that an equal value is not decoded
// again and a deletion is a change. The others are only counted.
const (
	minRefused     = 1024
	refusedPerKeys = 32 // one for so many keys that there may be
	maxRefused     = 1 << 16
)

func (s *Set[T]) canRemember() bool {
	most := maxRefused
	if s.limits.Keys > 0 {
		most = max(minRefused, s.limits.Keys/refusedPerKeys)
	}
	return s.records.Len()-s.inForce <= most
}

// refuse notes that the value of a key is refused. A key without a value in force
// is not remembered when there are too many of its kind.
func (s *Set[T]) refuse(p records.Place, r rejection, err error) {
	rec := s.records.At(p)
	if rec.Obj != nil || s.canRemember() {
		s.reject(rec.Name, r, err)
		return
	}
	s.forget(p)
	s.leaveOut(err)
}

// leftOut counts keys that are refused and not remembered.
type leftOut struct {
	n       int
	reasons map[wire.Reason]int
	over    Over // of these, and of those that are remembered
}

func newLeftOut() leftOut { return leftOut{reasons: make(map[wire.Reason]int)} }

func (s *Set[T]) leaveOut(err error) {
	to := &s.left
	if s.listing {
		to = &s.leaving
	}
	to.n++
	to.reasons[reasonOf(err)]++
	to.over |= overOf(err)
}

// less takes one off: a key that is not known was deleted. It counts as one of those for which
// there was no room.
func (l *leftOut) less() {
	if l.reasons[wire.ReasonBudget] == 0 {
		return
	}
	l.n--
	if l.reasons[wire.ReasonBudget]--; l.reasons[wire.ReasonBudget] == 0 {
		delete(l.reasons, wire.ReasonBudget)
		l.over &= OverValue
	}
}

// leftOut is the count to show: of the list that runs, once it is the higher one.
func (s *Set[T]) leftOut() *leftOut {
	if s.listing && s.leaving.n > s.left.n {
		return &s.leaving
	}
	return &s.left
}

// Over says which limits are exceeded, as of the last list and since.
func (s *Set[T]) Over() Over { return s.leftOut().over }

// Lacks reports whether a list may bring more than there is: there was no room for
// something, and deletions may have made some since.
func (s *Set[T]) Lacks() bool {
	return s.leftOut().n > 0 || s.Over()&(OverKeys|OverBytes|OverMemory) != 0
}

// Limit sets what the keys may cost, from the next one on.
func (s *Set[T]) Limit(l Limits) { s.limits = l }
