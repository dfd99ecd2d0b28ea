package syncstore

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

type part struct {
	at      records.Place
	epoch   uint
	hash    uint64 // of the value
	name    string
	value   []byte
	deletes bool

	kept   *kvstore.KeyValue // another's key, because of which it was not made; nil when it was made
	absent bool              // it deleted nothing, so that no event follows
}

type outcome uint8

const (
	acknowledged outcome = iota // made, at a known revision
	unknown                     // made or not
	refused                     // for its key or its value
)

const partSize = 24 // approximate size of a write in a transaction, without key and value

func (p *part) size() int { return len(p.name) + len(p.value) + partSize }

// schedule queues a line that differs for writing, or requests its value.
func (l *ledger) schedule(p records.Place, r *records.Record[line]) {
	switch {
	case l.isStopped(r):
		if l.lean {
			l.releaseValue(r) // it is requested when puts continue
		}
	case l.failures.has(p): // it waits until it is due
	case r.Obj.marks.has(isWanted) && !r.Obj.marks.has(isHeld):
		l.requestValue(p, r)
	case r.Obj.marks.has(isQueued):
	default:
		r.Obj.marks |= isQueued
		l.queue = append(l.queue, p)
	}
}

// requestValue notes that a value has to be requested from the owner, once.
func (l *ledger) requestValue(p records.Place, r *records.Record[line]) {
	if !r.Obj.marks.has(isMissing | isRequested) {
		r.Obj.marks |= isMissing
		l.missing = append(l.missing, p)
	}
}

// takeMissing returns the names whose values have to be requested, each once until the value is given.
func (l *ledger) takeMissing() []string {
	if len(l.missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(l.missing))
	for _, p := range l.missing {
		if !l.records.Has(p) {
			continue
		}
		if r := l.records.At(p); r.Obj.marks.has(isMissing) {
			r.Obj.marks ^= isMissing | isRequested
			names = append(names, r.Name)
		}
	}
	l.missing = nil
	return names
}

// takeWrites takes at most this number of writes, and of bytes in all, where each key has a prefix of this
// length. It returns the number of bytes that are left. The first write of a transaction may be larger. Each is
// in flight until finish is called for it.
func (l *ledger) takeWrites(most, bytes, prefix int, first bool) (parts []part, left int) {
	for ; l.following && most > 0 && len(l.queue) > 0; l.queue = l.queue[1:] {
		p := l.queue[0]
		if !l.records.Has(p) || !l.records.At(p).Obj.marks.has(isQueued) {
			continue
		}
		r := l.records.At(p)
		if !l.writable(p, r) {
			r.Obj.marks &^= isQueued
			continue
		}
		one := l.partFor(p, r)
		size := one.size() + prefix
		if size > bytes && !first {
			break
		}
		bytes, first = bytes-size, false
		l.markSent(one, r)
		parts = append(parts, one)
		most--
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
	return parts, bytes
}

// takeRetry takes one write that was refused before and is due to be tried again. A value that is not held is
// requested; the write is tried when the value is given.
func (l *ledger) takeRetry(now time.Time) (part, bool) {
	for l.following {
		p, ok := l.failures.due(now)
		if !ok {
			break
		}
		r := l.records.At(p)
		switch {
		case l.isStopped(r):
			l.failures.forget(p) // all are scheduled when puts continue
		case l.writable(p, r):
			one := l.partFor(p, r)
			l.markSent(one, r)
			return one, true
		case l.needsWrite(p, r):
			l.requestValue(p, r)
		default:
			l.failures.forget(p) // until it differs again
		}
	}
	return part{}, false
}

// writable reports whether a line needs a write that can be made now.
func (l *ledger) writable(p records.Place, r *records.Record[line]) bool {
	return l.needsWrite(p, r) && !l.isStopped(r) && (!r.Obj.marks.has(isWanted) || r.Obj.marks.has(isHeld))
}

// isStopped reports whether a line needs a put while puts are stopped.
func (l *ledger) isStopped(r *records.Record[line]) bool {
	return l.stopped && r.Obj.marks.has(isWanted)
}

func (l *ledger) setStopped(stopped bool) {
	if l.stopped == stopped {
		return
	}
	l.stopped = stopped
	l.updateAll()
}

// needsWrite reports whether a line needs a write that is neither acknowledged nor in flight.
func (l *ledger) needsWrite(p records.Place, r *records.Record[line]) bool {
	return r.Obj.marks.has(isDirty) && !r.Obj.marks.has(isInFlight) && !l.willMatch(p, r)
}

func (l *ledger) partFor(p records.Place, r *records.Record[line]) part {
	if !r.Obj.marks.has(isWanted) {
		return part{at: p, epoch: l.epoch, name: r.Name, deletes: true}
	}
	return part{at: p, epoch: l.epoch, name: r.Name, hash: r.Obj.want, value: r.Obj.value}
}

func (l *ledger) markSent(one part, r *records.Record[line]) {
	r.Obj.marks &^= isQueued
	r.Obj.marks |= isInFlight
	if one.deletes {
		r.Obj.marks |= isDeleting
	}
	for _, c := range l.checkpoints {
		c.markSent(one.at)
	}
	if l.shared && !one.deletes {
		r.Obj.marks |= isUncertain
	}
	l.inFlight++
}

// finish notes the outcome of a part. rev is the revision of a transaction that was
// acknowledged, why the reason of a refusal.
func (l *ledger) finish(one part, o outcome, rev int64, why error, now time.Time) {
	r := l.records.At(one.at)
	guessed := r.Obj.marks.has(isGuessed)
	r.Obj.marks &^= isInFlight | isDeleting | isGuessed
	l.inFlight--
	for _, c := range l.checkpoints {
		c.markAnswered(one.at, o)
	}
	switch {
	case o == refused:
		l.failures.add(one.at, now, why)
		if guessed { // the event was that of another writer
			l.markLost(one.at)
		}
		if l.lean {
			l.releaseValue(r)
		}
	case o == acknowledged && one.epoch == l.epoch:
		l.failures.forget(one.at)
		r.Obj.marks &^= isDoubtful
		l.awaitEvent(one, r, rev)
	default:
		l.failures.renew(one.at, now)
		if o == acknowledged {
			r.Obj.marks |= isDoubtful
		}
		l.markLost(one.at) // it may be lost
	}
	l.update(one.at)
}

// awaitEvent awaits the event of a write, unless it has arrived.
func (l *ledger) awaitEvent(one part, r *records.Record[line], rev int64) {
	switch {
	case rev < r.Rev: // a later event has arrived, which is not ours
		l.eventArrived(one.at)
		l.markLost(one.at)
	case rev == r.Rev || one.absent && !r.Obj.marks.has(isPresent):
		l.eventArrived(one.at)
	default: // where the key was absent, and known as present: the event of another's deletion
		l.awaited[one.at] = awaited{rev: rev, hash: one.hash, deletes: one.deletes, absent: one.absent}
		r.Obj.marks |= isAwaited
	}
}

func (l *ledger) backlog() int {
	if !l.following {
		return 0
	}
	return len(l.queue)
}
