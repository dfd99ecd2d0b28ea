package syncstore

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// part is one write of a transaction.
type part struct {
	at    records.Place
	epoch uint
	hash  uint64 // of the value
	name  string
	value []byte
	gone  bool // it is a deletion

	kept *kvstore.KeyValue // why it was not made; nil when it was
}

// outcomes of a part.
type outcome uint8

const (
	made    outcome = iota // by a transaction whose revision is known
	unmade                 // or nobody knows
	refused                // for what it is
)

// partSize is what a write adds to a transaction beside key and value, about.
const partSize = 24

// size is about how many bytes of a transaction a part takes, but for the prefix.
func (p *part) size() int { return len(p.name) + len(p.value) + partSize }

// provide has a line written that needs it, or has its value asked for.
func (l *ledger) provide(p records.Place, r *records.Record[line]) {
	switch {
	case l.stops(r):
		if l.lean {
			l.letGo(r) // it is asked for when puts go on
		}
	case l.failures.has(p): // until it is due
	case r.Obj.is.has(isWanted) && !r.Obj.is.has(isHeld):
		l.ask(p, r)
	case r.Obj.is.has(isQueued):
	default:
		r.Obj.is |= isQueued
		l.queue.push(p)
	}
}

// ask has the owner asked for a value, once.
func (l *ledger) ask(p records.Place, r *records.Record[line]) {
	if !r.Obj.is.has(isMissing | isAsked) {
		r.Obj.is |= isMissing
		l.asks = append(l.asks, p)
	}
}

// asked returns the names whose values are missing, each once until it is given.
func (l *ledger) asked() []string {
	if len(l.asks) == 0 {
		return nil
	}
	names := make([]string, 0, len(l.asks))
	for _, p := range l.asks {
		if !l.records.Has(p) {
			continue
		}
		if r := l.records.At(p); r.Obj.is.has(isMissing) {
			r.Obj.is ^= isMissing | isAsked
			names = append(names, r.Name)
		}
	}
	l.asks = nil
	return names
}

// take gives work: writes, so many at most and of so many bytes in all, each with
// a prefix of this length, and tells how many bytes are left. The first one of a
// transaction may be larger. Their lines are under way until they are settled.
func (l *ledger) take(most, bytes, prefix int, first bool) (parts []part, left int) {
	for l.open && most > 0 {
		p, ok := l.queue.first()
		if !ok {
			break
		}
		if !l.records.Has(p) || !l.records.At(p).Obj.is.has(isQueued) {
			l.queue.pop()
			continue
		}
		r := l.records.At(p)
		if !l.writable(p, r) {
			r.Obj.is &^= isQueued
			l.queue.pop()
			continue
		}
		one := l.partOf(p, r)
		size := one.size() + prefix
		if size > bytes && !first {
			break
		}
		bytes, first = bytes-size, false
		l.queue.pop()
		parts = append(parts, l.send(one, r))
		most--
	}
	return parts, bytes
}

// takeFailed gives one write that was refused before and is due to be tried
// again, by itself. Values that are not held are asked for; they are tried when
// they come.
func (l *ledger) takeFailed(now time.Time) (part, bool) {
	for l.open {
		p, ok := l.failures.due(now)
		if !ok {
			break
		}
		r := l.records.At(p)
		switch {
		case l.stops(r):
			l.failures.forget(p) // all are provided for when puts go on
		case l.writable(p, r):
			return l.send(l.partOf(p, r), r), true
		case l.idle(p, r):
			l.ask(p, r)
		default:
			l.failures.forget(p) // for when it is again
		}
	}
	return part{}, false
}

// writable tells whether there is something to write for a line, and it can be.
func (l *ledger) writable(p records.Place, r *records.Record[line]) bool {
	return l.idle(p, r) && !l.stops(r) && (!r.Obj.is.has(isWanted) || r.Obj.is.has(isHeld))
}

// stops tells whether what a line needs is a put, and there are none at present.
func (l *ledger) stops(r *records.Record[line]) bool { return l.stopped && r.Obj.is.has(isWanted) }

// stop stops all puts, or has them go on.
func (l *ledger) stop(puts bool) {
	if l.stopped == puts {
		return
	}
	l.stopped = puts
	for p := range l.records.All() {
		l.update(p)
	}
}

// idle tells whether a line needs a write that is neither made nor under way.
func (l *ledger) idle(p records.Place, r *records.Record[line]) bool {
	return r.Obj.is.has(isDirty) && !r.Obj.is.has(isFlying) && !l.comes(p, r)
}

func (l *ledger) partOf(p records.Place, r *records.Record[line]) part {
	if !r.Obj.is.has(isWanted) {
		return part{at: p, epoch: l.epoch, name: r.Name, gone: true}
	}
	return part{at: p, epoch: l.epoch, name: r.Name, hash: r.Obj.want, value: r.Obj.value}
}

func (l *ledger) send(one part, r *records.Record[line]) part {
	r.Obj.is &^= isQueued
	r.Obj.is |= isFlying
	if one.gone {
		r.Obj.is |= isLeaving
	}
	l.noteSent(one.at)
	if l.shared && !one.gone {
		r.Obj.is |= isDoubtful
	}
	l.flying++
	return one
}

// settle notes what came of a part. rev is the revision of a transaction that
// was made, why the reason of one that was refused.
func (l *ledger) settle(one part, o outcome, rev int64, why error, now time.Time) {
	r := l.records.At(one.at)
	r.Obj.is &^= isFlying | isLeaving
	l.flying--
	l.noteLanded(one.at, o)
	switch {
	case o == refused:
		l.failures.add(one.at, now, why)
		if l.lean {
			l.letGo(r)
		}
	case o == made && one.epoch == l.epoch:
		l.failures.forget(one.at)
		l.await(one, r, rev)
	default:
		l.failures.renew(one.at, now)
		l.lose(one.at) // or not: nobody knows what it has become
	}
	l.update(one.at)
}

// await notes a write of this epoch whose event will come, unless it has.
func (l *ledger) await(one part, r *records.Record[line], rev int64) {
	switch {
	case rev < r.Rev: // and what came after it is not ours
		l.hasCome(one.at)
		l.lose(one.at)
	case rev == r.Rev || one.gone && !r.Obj.is.has(isThere):
		l.hasCome(one.at)
	default:
		l.awaited[one.at] = awaited{rev: rev, hash: one.hash, gone: one.gone}
		r.Obj.is |= isAwaited
	}
}

// follow notes whether events are followed.
func (l *ledger) follow(now bool) { l.open = now }

// backlog is how many writes could be taken, at most.
func (l *ledger) backlog() int {
	if !l.open {
		return 0
	}
	return l.queue.len()
}

// workQueue is a queue of places, first in first out.
type workQueue struct {
	places []records.Place
	head   int
}

func (q *workQueue) push(p records.Place) { q.places = append(q.places, p) }

func (q *workQueue) len() int { return len(q.places) - q.head }

func (q *workQueue) first() (records.Place, bool) {
	if q.len() == 0 {
		return 0, false
	}
	return q.places[q.head], true
}

// pop removes the first one. What was popped is given back when it is most.
func (q *workQueue) pop() {
	if q.head++; q.head == len(q.places) {
		*q = workQueue{}
	} else if q.head > 1024 && 2*q.head > len(q.places) {
		q.places = append([]records.Place(nil), q.places[q.head:]...)
		q.head = 0
	}
}
