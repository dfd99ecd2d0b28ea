package syncstore

import (
	"hash/maphash"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// ledger is the pure core of a [Sync]: no I/O, no clock, no goroutine, no lock.
// It has one line for each name that is wanted or there, and says what is to be
// written so that what is there becomes what is wanted.
//
// What is there is known from lists and events alone, so that it is exactly what
// the kvstore had at the position that was followed. A write that was acknowledged
// is awaited: its event will come, and until then nothing is written for the name
// but another value. A list may come from another etcd: what it says counts,
// whatever its revisions, and writes that were begun before it are not awaited.
type ledger struct {
	shared bool // others have keys here too: a line is only for what was wanted
	lean   bool // values are held only until they are written or refused
	keep   bool // what is tied to no lease is others': it stays as it is

	seed    maphash.Seed
	records *records.Table[line] // rev and hash are those of what is there
	leases  leaseNames

	queue    workQueue
	asks     []records.Place // whose values are missing, and were not asked for yet
	failures failures

	stopped  bool // nothing is written but deletions
	complete bool // the owner has given everything
	listed   bool // a list is complete, and no other one under way
	open     bool // events are followed, after the list
	synced   bool // everything that was given was written once, since the owner began
	epoch    uint // counts the lists
	awaited  map[records.Place]awaited

	kept     map[records.Place][]byte // what others have, with keep
	keptNews bool                     // of that, or of what is wanted instead

	checkpoints []*checkpoint // of all who wait for one; seldom more than two
	first       *checkpoint   // whose end is synced; nil before everything is given, and after it
	news        bool          // one of them was reached or is void: who waits is to be told

	wanted, there, dirty, flying int // how many lines are that
	bytes                        int // of the values that are held
}

// awaited is a write that was acknowledged, and of which no event has told yet.
type awaited struct {
	rev  int64
	hash uint64 // of the value
	gone bool   // it is a deletion
}

// line is what is noted of a name beside what is there.
type line struct {
	want  uint64 // hash of the wanted value
	value []byte // the wanted value, while it is held
	lease leaseName
	is    mark
}

// mark is a set of properties of a line.
type mark uint16

const (
	isWanted    mark = 1 << iota
	isGiven          // wanted, and given since the owner began
	isWithdrawn      // not wanted any more, and to be deleted whether complete or not
	isThere          // in the kvstore
	isDoubtful       // shared: a write of ours may make it be there, and without a line no event would tell
	isDirty          // what is there is not what is wanted
	isHeld           // value is the wanted one
	isQueued         // in the queue
	isFlying         // a write is under way
	isAwaited        // the event of a write is
	isMissing        // in asks: the owner is to be asked for the value
	isAsked          // the owner was asked for the value
	isLeaving        // the write under way is a deletion
)

func (m mark) has(some mark) bool { return m&some != 0 }

func newLedger(shared, lean, keep bool) ledger {
	seed := maphash.MakeSeed()
	return ledger{
		shared: shared, lean: lean, keep: keep, seed: seed, records: records.New[line](seed),
		leases: newLeaseNames(), failures: newFailures(), awaited: make(map[records.Place]awaited), kept: make(map[records.Place][]byte),
	}
}

// put wants a value.
func (l *ledger) put(name string, value []byte, now time.Time) {
	p, known := l.records.FindString(name)
	if !known {
		p = l.records.Add(name)
	}
	r := l.records.At(p)
	r.Name = name // the owner has it in any case
	hash := maphash.Bytes(l.seed, value)
	if !r.Obj.is.has(isWanted) {
		l.wanted++
	}
	try := !r.Obj.is.has(isWanted) || r.Obj.want != hash || r.Obj.is.has(isMissing|isAsked)
	if try {
		l.failures.renew(p, now)
	}
	l.keptNews = l.keptNews || l.isKept(r) && (r.Obj.want != hash || !r.Obj.is.has(isWanted))
	r.Obj.want = hash
	if try || !l.lean || !l.failures.has(p) { // else it was refused, and is asked for in time
		l.hold(r, value)
	}
	r.Obj.is |= isWanted | isGiven
	r.Obj.is &^= isWithdrawn | isMissing | isAsked
	l.update(p)
}

// supply takes the value of a name again, if it is still the one that is wanted.
// It is not given anew by that.
func (l *ledger) supply(name string, value []byte, now time.Time) {
	p, known := l.records.FindString(name)
	if !known {
		return
	}
	r := l.records.At(p)
	if !r.Obj.is.has(isWanted) || r.Obj.want != maphash.Bytes(l.seed, value) {
		return
	}
	given := r.Obj.is & isGiven
	l.put(name, value, now)
	r.Obj.is = r.Obj.is&^isGiven | given
}

func (l *ledger) hold(r *records.Record[line], value []byte) {
	l.bytes += len(value) - len(r.Obj.value)
	r.Obj.value = value
	r.Obj.is |= isHeld
}

func (l *ledger) letGo(r *records.Record[line]) {
	l.bytes -= len(r.Obj.value)
	r.Obj.value = nil
	r.Obj.is &^= isHeld
}

// drop does not want a name any more.
func (l *ledger) drop(name string, now time.Time) {
	if p, known := l.records.FindString(name); known {
		l.withdraw(p, now)
	}
}

func (l *ledger) withdraw(p records.Place, now time.Time) {
	r := l.records.At(p)
	l.failures.renew(p, now)
	if r.Obj.is.has(isWanted) {
		l.wanted--
	}
	l.letGo(r)
	l.keptNews = l.keptNews || l.isKept(r)
	r.Obj.is &^= isWanted | isGiven | isMissing | isAsked
	r.Obj.is |= isWithdrawn
	l.update(p)
}

// beginAnew notes that the owner begins to give everything anew.
func (l *ledger) beginAnew() {
	l.complete, l.synced = false, false
	l.voidCheckpoints()
	for p := range l.records.All() {
		l.records.At(p).Obj.is &^= isGiven
		l.update(p)
	}
}

// completed notes that the owner has given everything: what he has not given is
// not wanted.
func (l *ledger) completed(now time.Time) {
	l.complete = true
	for p := range l.records.All() {
		if is := l.records.At(p).Obj.is; is.has(isWanted) && !is.has(isGiven) {
			l.withdraw(p, now)
		} else {
			l.update(p)
		}
	}
}

// beginList begins a list of what is there.
func (l *ledger) beginList() {
	l.voidCheckpoints()
	l.records.ForgetSeen()
	l.epoch++
	l.listed = false
}

// list takes an item of a list.
func (l *ledger) list(name []byte, kv *kvstore.KeyValue, owns func(int64) bool) {
	p, known := l.records.Find(name)
	if !known {
		if l.shared {
			return
		}
		p = l.records.Add(string(name))
	}
	l.records.MarkSeen(p)
	l.isThere(p, kv, owns)
}

// doneList ends a complete list, made at this revision.
func (l *ledger) doneList(rev int64, owns func(int64) bool) {
	l.leases.refresh(owns)
	l.listed = true
	for p := range l.awaited {
		l.hasCome(p)
	}
	for p := range l.records.All() {
		if l.records.IsSeen(p) {
			l.update(p)
		} else {
			l.isGone(p, rev)
		}
	}
}

// event takes an event.
func (l *ledger) event(name []byte, e *kvstore.Event, owns func(int64) bool) {
	p, known := l.records.Find(name)
	if e.Type == kvstore.EventDelete {
		if known && e.ModRevision > l.records.At(p).Rev {
			own := l.isOwn(p, e, owns)
			if a, is := l.awaited[p]; is && (a.gone || e.ModRevision >= a.rev) {
				l.hasCome(p)
			}
			l.isGone(p, e.ModRevision)
			if !own {
				l.lose(p)
			}
		}
		return
	}
	if !known {
		if l.shared {
			return
		}
		p = l.records.Add(string(name))
	}
	if e.ModRevision <= l.records.At(p).Rev {
		return
	}
	own := l.isOwn(p, e, owns)
	if a, is := l.awaited[p]; is && e.ModRevision >= a.rev {
		l.hasCome(p)
	}
	l.isThere(p, &e.KeyValue, owns)
	if !own {
		l.lose(p)
	}
}

// hasCome notes that an event need not be awaited any more.
func (l *ledger) hasCome(p records.Place) {
	delete(l.awaited, p)
	r := l.records.At(p)
	r.Obj.is &^= isAwaited
	if !r.Obj.is.has(isFlying) { // else there is another doubt
		r.Obj.is &^= isDoubtful
	}
	l.payAwaited(p)
}

// isThere notes what is there.
func (l *ledger) isThere(p records.Place, kv *kvstore.KeyValue, owns func(int64) bool) {
	lease := l.leases.name(kv.Lease, owns) // first: it may be the one that is forgotten
	r := l.records.At(p)
	if !r.Obj.is.has(isThere) {
		r.Obj.is |= isThere
		l.there++
	}
	l.leases.forget(r.Obj.lease)
	r.Rev, r.Hash, r.Obj.lease = kv.ModRevision, maphash.Bytes(l.seed, kv.Value), lease
	l.noteKept(p, r, kv.Value)
	l.update(p)
}

// isGone notes that nothing is there.
func (l *ledger) isGone(p records.Place, rev int64) {
	r := l.records.At(p)
	if r.Obj.is.has(isThere) {
		r.Obj.is &^= isThere
		l.there--
	}
	l.leases.forget(r.Obj.lease)
	r.Rev, r.Hash, r.Obj.lease = rev, 0, noLease
	l.noteKept(p, r, nil)
	l.update(p)
}

// leasesEnded looks again at who owns the leases.
func (l *ledger) leasesEnded(owns func(int64) bool) {
	if !l.leases.refresh(owns) {
		return
	}
	l.voidCheckpoints()
	for p := range l.records.All() {
		l.update(p)
	}
}

// needs tells whether what is there is not what is wanted.
func (l *ledger) needs(r *records.Record[line]) bool {
	if l.isKept(r) {
		return !r.Obj.is.has(isWanted) && r.Obj.is.has(isDoubtful)
	}
	if r.Obj.is.has(isWanted) {
		return !r.Obj.is.has(isThere) || r.Hash != r.Obj.want || !l.leases.ours(r.Obj.lease)
	}
	return r.Obj.is.has(isDoubtful) || r.Obj.is.has(isThere) && (l.complete || r.Obj.is.has(isWithdrawn))
}

// update draws the conclusions after any change of a line.
func (l *ledger) update(p records.Place) {
	r := l.records.At(p)
	needs := l.needs(r)
	if needs != r.Obj.is.has(isDirty) {
		r.Obj.is ^= isDirty
		if needs {
			l.dirty++
		} else {
			l.dirty--
		}
	}
	if !r.Obj.is.has(isDirty | isFlying | isAwaited) {
		l.pay(p)
	}
	switch {
	case r.Obj.is.has(isFlying) || l.comes(p, r):
	case needs:
		l.provide(p, r)
	case r.Obj.is.has(isAwaited):
	case !r.Obj.is.has(isWanted | isThere | isDoubtful), l.shared && l.isKept(r) && !r.Obj.is.has(isWanted):
		if r.Obj.is.has(isThere) {
			l.there--
		}
		l.failures.forget(p)
		l.forgetKept(p)
		l.records.Remove(p)
	default:
		l.failures.forget(p)
		r.Obj.is &^= isMissing | isAsked
		if l.lean {
			l.letGo(r)
		}
	}
}

// comes tells whether the write whose event is awaited makes what is wanted.
func (l *ledger) comes(p records.Place, r *records.Record[line]) bool {
	if !r.Obj.is.has(isAwaited) {
		return false
	}
	a := l.awaited[p]
	if r.Obj.is.has(isWanted) {
		return !a.gone && a.hash == r.Obj.want
	}
	return a.gone
}
