package syncstore

import (
	"hash/maphash"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// ledger is the pure core of a [Sync]: no I/O, no clock, no goroutine, no lock. It has one line for each name
// that is wanted or present, and determines the writes that make the present keys equal to the wanted ones.
//
// The present keys are known from lists and events alone, so they are exactly the keys of the kvstore at the
// position that was followed. The ledger waits for the event of an acknowledged write; until it arrives, only
// another value is written for the name. A list may come from another etcd: its contents count regardless of
// their revisions. A new stream may come from an etcd that was restored from a backup and lost acknowledged
// writes. So the events of writes that were sent before the stream began are not awaited.
type ledger struct {
	shared bool // others have keys here too: only names that were wanted have a line
	sole   bool // shared: keys with our leases have a line, too
	lean   bool // values are held only until they are written or refused
	keep   bool // keys without a lease belong to others and are not changed

	seed    maphash.Seed
	records *records.Table[line] // Rev and Hash are those of the present value
	leases  leaseNames

	queue    []records.Place // lines marked isQueued, and some that were
	missing  []records.Place // lines marked isMissing
	failures failures

	stopped   bool // only deletions are written
	complete  bool // the owner has given everything
	listed    bool // a list is complete, and no other one under way
	following bool // events are followed, after the list
	synced    bool // everything that was given was written once
	epoch     uint // counts the lists and the streams
	awaited   map[records.Place]awaited

	deleted deletion // the last of a key that was present

	kept        map[records.Place][]byte // the values of others, with keep
	keptChanged bool                     // contradictions may have changed

	checkpoints []*checkpoint // those in use; seldom more than two
	first       *checkpoint   // when it is reached everything is synced; nil before everything is given, and once everything is synced

	wanted, present, dirty, inFlight int // number of lines with this mark
	bytes                            int // of the values that are held
}

// deletion is the deletion of a key at a revision, or before. Without a name there was none.
type deletion struct {
	name   string
	rev    int64
	isBack bool // the list under way has the key
}

type awaited struct {
	rev     int64
	hash    uint64 // of the value
	deletes bool
	absent  bool // it is a deletion, and there was no key
}

// line has the data of a name in addition to its present value.
type line struct {
	want  uint64 // hash of the wanted value
	value []byte // the wanted value, while it is held
	lease leaseName
	marks mark
}

type mark uint16

const (
	isWanted    mark = 1 << iota
	isWithdrawn      // no longer wanted, and to be deleted whether complete or not
	isPresent        // in the kvstore
	isUncertain      // shared: a write of ours may make it present, and without a line its event would be ignored
	isDirty          // the present key is not as wanted
	isHeld           // value is the wanted one
	isQueued         // in the queue
	isInFlight       // a write has been sent and not been answered
	isAwaited        // the event of a write is awaited
	isMissing        // in missing: the owner has to be asked for the value
	isRequested      // the owner was asked for the value
	isDeleting       // the write in flight is a deletion
	isGuessed        // an event was taken for that of the write in flight
	isDoubtful       // the event of a write of an earlier epoch may still arrive
)

func (m mark) has(some mark) bool { return m&some != 0 }

func newLedger(shared, lean, keep bool) ledger {
	seed := maphash.MakeSeed()
	return ledger{
		shared: shared, lean: lean, keep: keep, seed: seed, records: records.New[line](seed),
		leases: newLeaseNames(), failures: newFailures(), awaited: make(map[records.Place]awaited), kept: make(map[records.Place][]byte),
	}
}

func (l *ledger) put(name string, value []byte, now time.Time) {
	p, known := l.records.FindString(name)
	if !known {
		p = l.records.Add(name)
	}
	r := l.records.At(p)
	r.Name = name // the owner has it in memory in any case
	hash := maphash.Bytes(l.seed, value)
	wanted := r.Obj.marks.has(isWanted)
	changed := !wanted || r.Obj.want != hash
	if !wanted {
		l.wanted++
	}
	try := changed || r.Obj.marks.has(isMissing|isRequested)
	if try {
		l.failures.renew(p, now)
	}
	l.keptChanged = l.keptChanged || changed && l.isKept(r)
	r.Obj.want = hash
	if try || !l.lean || !l.failures.has(p) { // else it was refused, and is requested when it is due
		l.holdValue(r, value)
	}
	r.Obj.marks |= isWanted
	r.Obj.marks &^= isWithdrawn | isMissing | isRequested
	l.update(p)
}

// supply takes a requested value, if it is still the wanted one.
func (l *ledger) supply(name string, value []byte, now time.Time) {
	p, known := l.records.FindString(name)
	if !known {
		return
	}
	if r := l.records.At(p); r.Obj.marks.has(isWanted) && r.Obj.want == maphash.Bytes(l.seed, value) {
		l.put(name, value, now)
	}
}

func (l *ledger) holdValue(r *records.Record[line], value []byte) {
	l.bytes += len(value) - len(r.Obj.value)
	r.Obj.value = value
	r.Obj.marks |= isHeld
}

func (l *ledger) releaseValue(r *records.Record[line]) {
	l.bytes -= len(r.Obj.value)
	r.Obj.value = nil
	r.Obj.marks &^= isHeld
}

func (l *ledger) remove(name string, now time.Time) {
	p, known := l.records.FindString(name)
	if !known {
		return
	}
	r := l.records.At(p)
	l.failures.renew(p, now)
	if r.Obj.marks.has(isWanted) {
		l.wanted--
	}
	l.releaseValue(r)
	l.keptChanged = l.keptChanged || l.isKept(r)
	r.Obj.marks &^= isWanted | isMissing | isRequested
	r.Obj.marks |= isWithdrawn
	l.update(p)
}

// markComplete notes that the owner has given everything: all other names are unwanted.
func (l *ledger) markComplete() {
	l.complete = true
	l.updateAll()
}

func isPending(r *records.Record[line]) bool {
	return r.Obj.marks.has(isDirty | isInFlight | isAwaited)
}

// differs reports whether the present key is not as wanted.
func (l *ledger) differs(r *records.Record[line]) bool {
	if l.isKept(r) {
		return !r.Obj.marks.has(isWanted) && r.Obj.marks.has(isUncertain)
	}
	if r.Obj.marks.has(isDoubtful) {
		return true
	}
	if r.Obj.marks.has(isWanted) {
		return !r.Obj.marks.has(isPresent) || r.Hash != r.Obj.want || !l.leases.ours(r.Obj.lease)
	}
	return r.Obj.marks.has(isUncertain) || r.Obj.marks.has(isPresent) && (l.complete || r.Obj.marks.has(isWithdrawn))
}

// willMatch reports whether the write whose event is awaited makes the key as wanted.
func (l *ledger) willMatch(p records.Place, r *records.Record[line]) bool {
	if !r.Obj.marks.has(isAwaited) {
		return false
	}
	a := l.awaited[p]
	if r.Obj.marks.has(isWanted) {
		return !a.deletes && a.hash == r.Obj.want
	}
	return a.deletes
}

// updateAll calls update for every line, after a change that concerns all of them.
func (l *ledger) updateAll() {
	for p := range l.records.All() {
		l.update(p)
	}
}

// update is called after any change of a line. It updates the counts, schedules a write, or removes the line.
func (l *ledger) update(p records.Place) {
	r := l.records.At(p)
	differs := l.differs(r)
	if differs != r.Obj.marks.has(isDirty) {
		r.Obj.marks ^= isDirty
		if differs {
			l.dirty++
		} else {
			l.dirty--
		}
	}
	if !isPending(r) {
		l.markDone(p)
	}
	switch {
	case r.Obj.marks.has(isInFlight) || l.willMatch(p, r):
	case differs:
		l.schedule(p, r)
	case r.Obj.marks.has(isAwaited):
	case !r.Obj.marks.has(isWanted | isPresent | isUncertain), l.shared && l.isKept(r) && !r.Obj.marks.has(isWanted):
		if r.Obj.marks.has(isPresent) {
			l.present--
		}
		l.failures.forget(p)
		l.forgetKept(p)
		l.records.Remove(p)
	default:
		l.failures.forget(p)
		r.Obj.marks &^= isMissing | isRequested
		if l.lean {
			l.releaseValue(r)
		}
	}
}
