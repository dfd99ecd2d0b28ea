// Package quota bounds the parts of one amount that several owners, such as clients or clusters, hold: all together,
// and each of them. So no owner takes the share of the others.
package quota

import (
	"fmt"
	"sync"
)

// Quota counts an amount, such as bytes, by owner. Its methods may be called by any goroutine.
type Quota[Owner comparable] struct {
	all, each int64

	mu   sync.Mutex
	sum  int64
	held map[Owner]int64 // without those that hold nothing
}

// New returns a quota of which no owner holds anything. The bound all is for all owners together, each for one owner.
func New[Owner comparable](all, each int64) *Quota[Owner] {
	return &Quota[Owner]{all: all, each: each, held: make(map[Owner]int64)}
}

// Exceeded is the error of an amount for which there is no room.
type Exceeded struct {
	Bound int64
	Own   bool // the bound is that of one owner; else that of all together
}

// Error says which bound is reached.
func (e *Exceeded) Error() string {
	if e.Own {
		return fmt.Sprintf("the bound of %d for one is reached", e.Bound)
	}
	return fmt.Sprintf("the bound of %d for all together is reached", e.Bound)
}

// Reserve takes an amount for an owner. Without room for it, it takes nothing, and the error is an [*Exceeded].
func (q *Quota[Owner]) Reserve(owner Owner, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case n > 0 && q.sum+n > q.all: // first: an owner that holds less would not get it either
		return &Exceeded{q.all, false}
	case n > 0 && q.held[owner]+n > q.each:
		return &Exceeded{q.each, true}
	}
	q.add(owner, n)
	return nil
}

// ReserveBeyond takes an amount for an owner also beyond its share, as long as there is room for all together.
func (q *Quota[Owner]) ReserveBeyond(owner Owner, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > 0 && q.sum+n > q.all {
		return &Exceeded{q.all, false}
	}
	q.add(owner, n)
	return nil
}

// Release returns an amount to the quota.
func (q *Quota[Owner]) Release(owner Owner, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(owner, -n)
}

func (q *Quota[Owner]) add(owner Owner, n int64) {
	q.sum += n
	if q.held[owner] += n; q.held[owner] == 0 {
		delete(q.held, owner)
	}
}

// Held is what an owner holds, Sum what all hold together.
func (q *Quota[Owner]) Held(owner Owner) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held[owner]
}

// Sum is what all hold together.
func (q *Quota[Owner]) Sum() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sum
}
