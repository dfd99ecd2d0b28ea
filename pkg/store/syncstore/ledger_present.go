package syncstore

import (
	"hash/maphash"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

func (l *ledger) beginList() {
	l.invalidateCheckpoints()
	l.records.ForgetSeen()
	l.epoch++
	l.listed, l.deleted.isBack = false, false
}

func (l *ledger) listItem(name []byte, kv *kvstore.KeyValue, owns func(int64) bool) {
	l.deleted.isBack = l.deleted.isBack || string(name) == l.deleted.name
	if p, ok := l.lineFor(name, l.mayOwn(kv, owns)); ok {
		l.records.MarkSeen(p)
		l.setPresent(p, kv, owns)
	}
}

// endList ends a complete list, made at this revision. It shows the result of all writes that were acknowledged
// before it began.
func (l *ledger) endList(rev int64, owns func(int64) bool) {
	l.leases.refresh(owns)
	l.listed = true
	if l.deleted.rev = rev; l.deleted.isBack {
		l.deleted = deletion{}
	}
	for p := range l.awaited {
		l.eventArrived(p)
	}
	for p := range l.records.All() {
		if l.records.IsSeen(p) {
			l.update(p)
		} else {
			l.setAbsent(p, rev)
		}
	}
}

// setFollowing notes that a stream of events has begun, or ended. A stream may resume where the last one ended although
// the server was restored from a backup since, so that the events of acknowledged writes do not come.
func (l *ledger) setFollowing(is bool) {
	if l.following = is; !is {
		return
	}
	l.epoch++
	for p := range l.awaited {
		delete(l.awaited, p)
		r := l.records.At(p)
		r.Obj.marks &^= isAwaited // what may be present stays uncertain
		r.Obj.marks |= isDoubtful
		l.update(p)
		l.markLost(p)
	}
}

func (l *ledger) applyEvent(name []byte, e *kvstore.Event, owns func(int64) bool) {
	deletes := e.Type == kvstore.EventDelete
	p, known := l.lineFor(name, !deletes && l.mayOwn(&e.KeyValue, owns))
	if !known || e.ModRevision <= l.records.At(p).Rev {
		return
	}
	own := l.isOwn(p, e, owns)
	if a, is := l.awaited[p]; is && (e.ModRevision >= a.rev || deletes && a.absent) {
		l.eventArrived(p)
	}
	if deletes {
		l.setAbsent(p, e.ModRevision)
	} else {
		l.setPresent(p, &e.KeyValue, owns)
	}
	if !own {
		l.markLost(p)
	}
}

// mayOwn reports whether a present key without a line may be ours ([Params.Sole]).
func (l *ledger) mayOwn(kv *kvstore.KeyValue, owns func(int64) bool) bool {
	return !l.shared || l.sole && owns(kv.Lease)
}

// lineFor returns the line of a key, and adds a missing one if add is set; not ok when there is none, as for
// the keys of others in a shared prefix.
func (l *ledger) lineFor(name []byte, add bool) (p records.Place, ok bool) {
	p, known := l.records.Find(name)
	if known || !add {
		return p, known
	}
	return l.records.Add(string(name)), true
}

func (l *ledger) eventArrived(p records.Place) {
	delete(l.awaited, p)
	r := l.records.At(p)
	r.Obj.marks &^= isAwaited
	if !r.Obj.marks.has(isInFlight) { // else that write is uncertain
		r.Obj.marks &^= isUncertain
	}
	l.markEventArrived(p)
}

func (l *ledger) setPresent(p records.Place, kv *kvstore.KeyValue, owns func(int64) bool) {
	lease := l.leases.name(kv.Lease, owns) // before forget, since it may be the lease that is forgotten
	r := l.records.At(p)
	if !r.Obj.marks.has(isPresent) {
		r.Obj.marks |= isPresent
		l.present++
	}
	l.leases.forget(r.Obj.lease)
	r.Rev, r.Hash, r.Obj.lease = kv.ModRevision, maphash.Bytes(l.seed, kv.Value), lease
	l.noteKept(p, r, kv.Value)
	l.update(p)
}

func (l *ledger) setAbsent(p records.Place, rev int64) {
	r := l.records.At(p)
	if r.Obj.marks.has(isPresent) {
		r.Obj.marks &^= isPresent
		l.present--
		l.deleted = deletion{name: r.Name, rev: rev}
	}
	l.leases.forget(r.Obj.lease)
	r.Rev, r.Hash, r.Obj.lease = rev, 0, noLease
	l.noteKept(p, r, nil)
	l.update(p)
}

func (l *ledger) refreshLeases(owns func(int64) bool) {
	if !l.leases.refresh(owns) && len(l.awaited) == 0 { // the lease of a write is known from its event
		return
	}
	l.invalidateCheckpoints()
	l.updateAll()
}
