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

// ErrStopped: nothing is put for want of space that is granted ([Outbox.Grant]).
var ErrStopped = errors.New("writing has stopped")

type space struct {
	granted atomic.Int64 // how many bytes may still be put; Unbounded: as many as there are
	spent   atomic.Int64 // how many were, in all
	stopped atomic.Bool  // there are no puts, but for vital ones
	full    atomic.Bool  // there are none at all
	fullAt  atomic.Int64 // when the kvstore has said last that it has no space, in Unix nanoseconds; 0: never
}

// cost is about how much space a put takes in etcd at most: pages are not filled to
// the end, and each revision has a key of its own.
func (p *part) cost(prefix int) int64 { return int64(2*(p.size()+prefix) + 256) }

// Grant says how many bytes may be put from now on, by what they may cost in etcd: [Unbounded] as
// many as there are, 0 none. When they are used up there are no puts until the next Grant, but for
// those of vital Syncs ([Params.Vital]) and deletions. A Sync with Again does not hold the values
// meanwhile.
func (o *Outbox) Grant(bytes int64) {
	o.granted.Store(bytes)
	if bytes > 0 {
		o.full.Store(false)
	}
	o.setStopped(bytes <= 0)
}

// maxBytes is how large a transaction may be. What is granted is not exceeded by much; where
// nothing is, there are deletions alone.
func (o *Outbox) maxBytes() int {
	const least = 16 << 10
	left := o.granted.Load()
	if left <= 0 {
		return transactionBytes
	}
	return int(min(transactionBytes, max(left/2, least))) // a byte may cost two
}

// Spent is how many bytes were put in all, as Grant counts them.
func (o *Outbox) Spent() int64 { return o.spent.Load() }

// Stopped reports whether there are no puts for want of a grant.
func (o *Outbox) Stopped() bool { return o.stopped.Load() }

// FullAt is when the kvstore has said last that it has no space; zero for never.
func (o *Outbox) FullAt() time.Time {
	at := o.fullAt.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// handleNoSpace is called when the kvstore has no space. Where space is granted there are no puts
// until the next Grant, so that deletions are made; else they are tried again like all others.
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

// notifyStopped has all Syncs look whether puts are stopped. The last of several calls at
// once sees the final state.
func (o *Outbox) notifyStopped() {
	o.mu.Lock()
	syncs := slices.Collect(maps.Keys(o.syncs))
	o.mu.Unlock()
	for _, s := range syncs {
		s.updateStopped()
	}
}
