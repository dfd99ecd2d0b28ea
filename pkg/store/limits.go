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

// Limits bound the cost of the keys below one prefix (pkg/budget). In each field the zero value is no bound.
type Limits struct {
	budget.Share                 // keys and bytes
	Value        int64           // largest size of a value in bytes
	List         time.Duration   // duration of a list, without the time that it waits for other lists
	Events       *rate.Limiter   // rate of the events of all resources of a cluster
	Memory       *budget.Account // counts the memory of the values in force, from [Costs]; nil counts nothing
}

// Costs is implemented by values that return their approximate memory in bytes, including their memory in the
// tables. For other values, three times the bytes of the key and the encoded value are assumed.
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

// Over is the set of exceeded limits of keys; zero for none.
type Over uint8

// The limits.
const (
	OverKeys Over = 1 << iota
	OverBytes
	OverValue
	OverMemory
)

// Names returns the settings of these limits, as pkg/budget names them.
func (o Over) Names() []string {
	var names []string
	for i, name := range []string{"keys", "bytes", "value", "memory"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by commas.
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

// decode decodes a value that is within the limits, and counts its size.
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
	if !l.Memory.Fits(int64(size) - int64(r.Cost)) { // refused without decoding: a value takes more memory than its bytes
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

// release subtracts the memory of a value that is no longer in force from the account.
func (s *Set[T]) release(r *records.Record[*T]) {
	s.limits.Memory.Add(-int64(r.Cost))
	r.Cost = 0
}

// Refused keys are remembered up to a bound, so that an equal value is not decoded again, and the deletion of
// such keys is noticed. The others are only counted.
const (
	minRefused     = 1024
	refusedPerKeys = 32 // one refused key for this many keys of the limit
	maxRefused     = 1 << 16
)

func (s *Set[T]) canRemember() bool {
	most := maxRefused
	if s.limits.Keys > 0 {
		most = max(minRefused, s.limits.Keys/refusedPerKeys)
	}
	return s.records.Len()-s.inForce <= most
}

// refuse notes that the value of a key is refused. A key without a value in force is not remembered when too
// many refused keys are remembered already.
func (s *Set[T]) refuse(p records.Place, r rejection, err error) {
	rec := s.records.At(p)
	if rec.Obj != nil || s.canRemember() {
		s.reject(rec.Name, r, err)
		return
	}
	s.forget(p)
	s.leaveOut(err)
}

// leftOut counts the refused keys that are not remembered.
type leftOut struct {
	n       int
	reasons map[wire.Reason]int
	over    Over // limits exceeded by these keys and by the remembered ones
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

// less subtracts one key, because an unknown key was deleted. This key is assumed to be one of those for which
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

// leftOut returns the counts to show: those of the running list once they are higher, else those of the last
// list.
func (s *Set[T]) leftOut() *leftOut {
	if s.listing && s.leaving.n > s.left.n {
		return &s.leaving
	}
	return &s.left
}

// Over returns the limits that are exceeded, as of the last list and the events since.
func (s *Set[T]) Over() Over { return s.leftOut().over }

// Lacks reports whether a list may return keys that are not in the set: there was no room for some keys, and
// deletions may have made room since.
func (s *Set[T]) Lacks() bool {
	return s.leftOut().n > 0 || s.Over()&(OverKeys|OverBytes|OverMemory) != 0
}

// Limit sets the limits of the keys, from the next key on.
func (s *Set[T]) Limit(l Limits) { s.limits = l }
