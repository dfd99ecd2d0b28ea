package syncstore

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Unbounded is a grant without a bound.
const Unbounded = math.MaxInt64

// ErrStopped: puts are stopped because there is no granted space ([Outbox.Grant]).
var ErrStopped = errors.New("writing has stopped")

type space struct {
	granted atomic.Int64 // bytes that may still be put; Unbounded: no limit
	spent   atomic.Int64 // bytes that were put in all
	stopped atomic.Bool  // there are no puts except vital ones
	full    atomic.Bool  // there are no puts at all
	fullAt  atomic.Int64 // when the kvstore last reported that it has no space, in Unix nanoseconds; 0: never
}

// cost returns an estimate of the space that a put takes in etcd at most: pages are not filled completely, and
// each revision has a key of its own.
func (p *part) cost(prefix int) int64 { return int64(2*(p.size()+prefix) + 256) }

// Grant sets how many bytes may be put from now on, measured by their possible cost in etcd: [Unbounded] is no
// limit, 0 is none. When they are used up, only puts of vital Syncs ([Params.Vital]) and deletions are made
// until the next Grant. A Sync with Again does not hold its values during this time.
func (o *Outbox) Grant(bytes int64) {
	o.granted.Store(bytes)
	if bytes > 0 {
		o.full.Store(false)
	}
	o.setStopped(bytes <= 0)
}

// maxBytes returns the largest size of a transaction, so that the granted space is not exceeded by much.
// Without granted space there are only deletions and vital puts, with the usual size.
func (o *Outbox) maxBytes() int {
	const least = 16 << 10
	left := o.granted.Load()
	if left <= 0 {
		return transactionBytes
	}
	return int(min(transactionBytes, max(left/2, least))) // a byte may cost two
}

// Spent returns the number of bytes that were put in all, as Grant counts them.
func (o *Outbox) Spent() int64 { return o.spent.Load() }

// Stopped reports whether puts are stopped because there is no granted space.
func (o *Outbox) Stopped() bool { return o.stopped.Load() }

// FullAt returns when the kvstore last reported that it has no space; zero for never.
func (o *Outbox) FullAt() time.Time {
	at := o.fullAt.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// handleNoSpace is called when the kvstore has no space. Where space is granted, there are no puts until the
// next Grant, so that deletions are made. With an unbounded grant puts are tried again like all other writes.
func (o *Outbox) handleNoSpace() {
	o.fullAt.Store(time.Now().UnixNano())
	if o.granted.Load() == Unbounded {
		return
	}
	o.granted.Store(0)
	o.stopped.Store(true)
	o.full.Store(true)
	o.notifyStopped()
}

func (o *Outbox) countPuts(s *Sync, parts []part) {
	var cost int64
	for i := range parts {
		if !parts[i].deletes {
			cost += parts[i].cost(len(s.p.Prefix))
		}
	}
	o.spent.Add(cost)
	if cost > 0 && o.granted.Load() != Unbounded && o.granted.Add(-cost) <= 0 {
		o.setStopped(true)
	}
}

func (o *Outbox) setStopped(puts bool) {
	if o.stopped.Swap(puts) != puts {
		o.notifyStopped()
	}
}

// notifyStopped makes all Syncs check whether puts are stopped. The last of several concurrent calls reads the
// final state.
func (o *Outbox) notifyStopped() {
	o.mu.Lock()
	syncs := slices.Collect(maps.Keys(o.syncs))
	o.mu.Unlock()
	for _, s := range syncs {
		s.updateStopped()
	}
}
