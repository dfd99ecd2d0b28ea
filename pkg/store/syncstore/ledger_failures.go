package syncstore

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// failures are the writes that a server refuses because of their key or value, each with the time at which it
// is tried again (spec wire.md §5).
type failures struct {
	of    map[records.Place]failure
	order *btree.BTreeG[retry] // those that are not in flight
}

type failure struct {
	tries int
	due   time.Time
	why   error // of the latest refusal
}

// How long a refused write waits.
const (
	retryFirst  = 5 * time.Millisecond
	retryLatest = 1000 * time.Second
)

func newFailures() failures {
	return failures{of: make(map[records.Place]failure), order: btree.NewBTreeGOptions(retry.before, btree.Options{NoLocks: true})}
}

func (f *failures) has(p records.Place) bool {
	_, has := f.of[p]
	return has
}

func (f *failures) add(p records.Place, now time.Time, why error) {
	one := f.of[p]
	pause := min(retryLatest, retryFirst<<min(one.tries, 18)) // 5 ms << 18 is more than the latest
	f.set(p, failure{tries: one.tries + 1, due: now.Add(pause), why: why})
}

// renew makes a refused write due, for example because it has another value now.
func (f *failures) renew(p records.Place, now time.Time) {
	if one, has := f.of[p]; has {
		one.due = now
		f.set(p, one)
	}
}

func (f *failures) set(p records.Place, one failure) {
	f.forget(p)
	f.of[p] = one
	f.order.Set(retry{p, one.due})
}

func (f *failures) forget(p records.Place) {
	if one, has := f.of[p]; has {
		f.order.Delete(retry{p, one.due})
		delete(f.of, p)
	}
}

// due removes the first due write from the order. The write stays a failure.
func (f *failures) due(now time.Time) (records.Place, bool) {
	next, ok := f.next()
	if !ok || next.After(now) {
		return 0, false
	}
	first, _ := f.order.PopMin()
	return first.at, true
}

func (f *failures) next() (time.Time, bool) {
	first, ok := f.order.Min()
	return first.due, ok
}

type retry struct {
	at  records.Place
	due time.Time
}

func (r retry) before(other retry) bool {
	if c := r.due.Compare(other.due); c != 0 {
		return c < 0
	}
	return r.at < other.at
}
