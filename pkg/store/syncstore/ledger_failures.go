package syncstore

import (
	"container/heap"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// failures are the writes that a server refuses for what they are, each with
// the time at which it is tried again (spec wire.md §5).
type failures struct {
	of    map[records.Place]failure
	order retries
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

func newFailures() failures { return failures{of: make(map[records.Place]failure)} }

func (f *failures) has(p records.Place) bool {
	_, has := f.of[p]
	return has
}

// add notes another refusal, and why.
func (f *failures) add(p records.Place, now time.Time, why error) {
	one := f.of[p]
	pause := retryLatest
	if one.tries < 18 { // 5 ms << 18 is more than that
		pause = min(pause, retryFirst<<one.tries)
	}
	f.set(p, failure{tries: one.tries + 1, due: now.Add(pause), why: why})
}

// renew makes a refused write due: it is for another value now.
func (f *failures) renew(p records.Place, now time.Time) {
	if one, has := f.of[p]; has {
		one.due = now
		f.set(p, one)
	}
}

func (f *failures) set(p records.Place, one failure) {
	f.of[p] = one
	heap.Push(&f.order, retry{p, one.due})
}

func (f *failures) forget(p records.Place) {
	delete(f.of, p)
	if len(f.of) == 0 {
		f.order = nil
	}
}

// due removes the first one that is due from the order. It stays a failure.
func (f *failures) due(now time.Time) (records.Place, bool) {
	next, ok := f.next()
	if !ok || next.After(now) {
		return 0, false
	}
	return heap.Pop(&f.order).(retry).at, true //nolint:forcetypeassert // it has no others
}

// next tells when the next one is due.
func (f *failures) next() (time.Time, bool) {
	for len(f.order) > 0 {
		first := f.order[0]
		if one, has := f.of[first.at]; has && one.due.Equal(first.due) {
			return first.due, true
		}
		heap.Pop(&f.order) // it succeeded, or is due at another time
	}
	return time.Time{}, false
}

type retry struct {
	at  records.Place
	due time.Time
}

// retries is a heap, by time.
type retries []retry

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].due.Before(r[j].due) }
func (r retries) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *retries) Push(x any)        { *r = append(*r, x.(retry)) } //nolint:forcetypeassert // it has no others
func (r *retries) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
