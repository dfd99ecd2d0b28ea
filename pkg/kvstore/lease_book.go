package kvstore

import (
	"maps"
	"slices"
	"time"
)

// keysPerLease is the maximum number of keys that one lease gets (spec wire.md §5).
const keysPerLease = 1000

// leaseBook is the pure core of [Leases]: which key is tied to which lease, when each lease is
// due to be kept alive, and which keys end with it.
//
// A key is attached before it is written, and the outcome is recorded afterwards. Meanwhile it
// counts as tied: when a lease ends, it is better to report too many keys than too few.
type leaseBook struct {
	leases map[int64]*lease
	of     map[string]tie // by key, for each tied key; there may be hundreds of thousands
	roomy  int64          // the last lease that had room
}

// lease is a granted lease.
type lease struct {
	ttl      time.Duration
	answered time.Time // when the last answered request was sent
	next     time.Time // when to ask again
	keys     int       // the number of keys tied to it
}

// tie is the state of a key that may be tied to a lease.
type tie struct {
	lease   int64
	rev     int64 // of the last write that was made, or may have been made; 0: none
	writing int   // writes in progress
}

// outcome is the outcome of a write that should tie a key to a lease.
type outcome uint8

const (
	tied    outcome = iota // the key is tied to the lease
	untied                 // the write was not made
	unknown                // the write may have been made or not
)

func newLeaseBook() leaseBook {
	return leaseBook{leases: make(map[int64]*lease), of: make(map[string]tie)}
}

// add records a lease that was requested at now and granted for ttl.
func (b *leaseBook) add(id int64, ttl time.Duration, now time.Time) {
	b.leases[id] = &lease{ttl: ttl, answered: now, next: now.Add(ttl / 3)}
	b.roomy = id
}

// attach chooses the lease for a write of the key: its current one, or one with
// room. It returns false when a new lease is needed.
func (b *leaseBook) attach(key string) (int64, bool) {
	t, ok := b.of[key]
	if !ok {
		if t.lease, ok = b.withRoom(); !ok {
			return 0, false
		}
		b.leases[t.lease].keys++
	}
	t.writing++
	b.of[key] = t
	return t.lease, true
}

func (b *leaseBook) withRoom() (int64, bool) {
	if l := b.leases[b.roomy]; l != nil && l.keys < keysPerLease {
		return b.roomy, true
	}
	for id, l := range b.leases {
		if l.keys < keysPerLease {
			b.roomy = id
			return id, true
		}
	}
	return 0, false
}

// record ends a write of the key that was attached to the lease; rev is the revision of the
// write when the key is tied. When the lease has ended meanwhile, there is no tie, and record does nothing.
func (b *leaseBook) record(key string, id int64, o outcome, rev int64) {
	t, ok := b.of[key]
	if !ok || t.lease != id {
		return
	}
	t.writing--
	switch o {
	case tied:
		t.rev = max(t.rev, rev)
	case unknown:
		t.rev = max(t.rev, 1) // so that any later deletion is after it
	case untied:
	}
	b.of[key] = t
	if t.writing == 0 && t.rev == 0 {
		b.forget(key)
	}
}

// detach records that the key was deleted, or written without a lease, at rev. While a write
// of the key is in progress, the tie stays, because that write may tie the key again.
func (b *leaseBook) detach(key string, rev int64) {
	if t, ok := b.of[key]; ok && t.writing == 0 && t.rev < rev {
		b.forget(key)
	}
}

// detachAll calls detach for all keys of a selection.
func (b *leaseBook) detachAll(selection string, rev int64) {
	for key := range b.of {
		if Selects(selection, key) {
			b.detach(key, rev)
		}
	}
}

func (b *leaseBook) forget(key string) {
	b.leases[b.of[key].lease].keys--
	delete(b.of, key)
}

// end removes leases that have ended, and returns the sorted keys of each lease that was known.
func (b *leaseBook) end(ids ...int64) map[int64][]string {
	ended, keys := make(map[int64][]string), 0
	for _, id := range ids {
		if l := b.leases[id]; l != nil {
			keys += l.keys
			ended[id] = nil
			delete(b.leases, id)
		}
	}
	if keys == 0 {
		return ended
	}
	for key, t := range b.of {
		if _, over := ended[t.lease]; over {
			ended[t.lease] = append(ended[t.lease], key)
			delete(b.of, key)
		}
	}
	for _, keys := range ended {
		slices.Sort(keys)
	}
	return ended
}

func (b *leaseBook) ids() []int64 { return slices.Sorted(maps.Keys(b.leases)) }

// due returns the leases to keep alive now, and the time when the next one is due; zero: never.
func (b *leaseBook) due(now time.Time) (ids []int64, next time.Time) {
	for _, id := range b.ids() {
		switch l := b.leases[id]; {
		case !l.next.After(now):
			ids = append(ids, id)
		case next.IsZero() || l.next.Before(next):
			next = l.next
		}
	}
	return ids, next
}

// allDue makes all leases due.
func (b *leaseBook) allDue() {
	for _, l := range b.leases {
		l.next = time.Time{}
	}
}

// kept records that a lease is alive, according to the answer to a request that was sent at now.
func (b *leaseBook) kept(id int64, now time.Time) {
	if l := b.leases[id]; l != nil {
		l.answered, l.next = now, now.Add(l.ttl/3)
	}
}

// retryAfter is the longest pause before an unanswered request about a lease is repeated.
const retryAfter = 3 * time.Second

// unanswered records that a request about the leases got no answer, and returns the leases whose
// TTL has passed: they count as ended.
func (b *leaseBook) unanswered(ids []int64, now time.Time) (over []int64) {
	for _, id := range ids {
		l := b.leases[id]
		switch {
		case l == nil:
		case now.Sub(l.answered) > l.ttl:
			over = append(over, id)
		default:
			l.next = now.Add(min(l.ttl/10, retryAfter))
		}
	}
	return over
}
