package syncstore

import (
	"bytes"
	"hash/maphash"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

func (l *ledger) isClean() bool {
	return l.isLoaded() && l.dirty == 0 && l.inFlight == 0 && len(l.awaited) == 0
}

// updateSynced is called after each change, and notes when everything was written once.
func (l *ledger) updateSynced() {
	if l.synced {
		return
	}
	if l.first == nil || l.first.invalid {
		l.first = l.newCheckpoint()
	}
	if l.first != nil && l.first.isReached() {
		l.dropCheckpoint(l.first)
		l.first, l.synced = nil, true
	}
}

// isWritten reports whether a name is known to be as wanted. An unwanted name has to be absent.
func (l *ledger) isWritten(name string) bool {
	if !l.listed {
		return false
	}
	p, known := l.records.FindString(name)
	if !known {
		return true
	}
	r := l.records.At(p)
	return !isPending(r) && (r.Obj.marks.has(isWanted) || !r.Obj.marks.has(isPresent))
}

// refusal returns the latest reason for which the write of a name was refused; nil when it was not.
func (l *ledger) refusal(name string) error {
	p, known := l.records.FindString(name)
	if !known {
		return nil
	}
	return l.failures.of[p].why
}

// proofs returns the questions about the past for [follow.Keeper]. Of shared keys only our own are known: those are the
// one written last, and if one was deleted later, that: a restored server can have it again. Without present keys there is
// none: any history agrees with that.
func (l *ledger) proofs(prefix string) []follow.Proof {
	switch {
	case l.present == 0:
		return nil
	case !l.shared && l.present <= follow.ProofKeys:
		return []follow.Proof{{Prefix: prefix}}
	}
	one := func(name string) follow.Proof { return follow.Proof{Prefix: prefix + name, OneKey: true, Name: name} }
	newest := l.records.Newest(isPresentLine)
	all := []follow.Proof{one(newest)}
	if !l.shared {
		return append(all, follow.Proof{Prefix: prefix, Part: true})
	}
	if p, known := l.records.FindString(newest); known && l.deleted.name != "" && l.deleted.rev > l.records.At(p).Rev {
		all = append(all, one(l.deleted.name))
	}
	return all
}

func (l *ledger) agrees(p follow.Proof, past kvstore.Past) bool {
	if at, known := l.records.FindString(p.Name); p.OneKey && (!known || !isPresentLine(l.records.At(at))) {
		// Another may have written it since it was deleted.
		return p.Name == l.deleted.name && (len(past.Items) == 0 || past.Items[0].ModRevision > l.deleted.rev)
	}
	for _, kv := range past.Items {
		at, known := l.records.Find(kv.Key)
		if !known {
			return false
		}
		r := l.records.At(at)
		if !isPresentLine(r) || r.Rev != kv.ModRevision || r.Hash != maphash.Bytes(l.seed, kv.Value) {
			return false
		}
	}
	if p.OneKey {
		return len(past.Items) == 1
	}
	return l.records.Agrees(past, isPresentLine)
}

func isPresentLine(r *records.Record[line]) bool { return r.Obj.marks.has(isPresent) }

// isKept reports whether the present key belongs to another writer, is tied to no lease, and is not changed. A
// write never replaces or deletes it, since its transaction checks this again.
func (l *ledger) isKept(r *records.Record[line]) bool {
	return l.keep && r.Obj.marks.has(isPresent) && r.Obj.lease == noLease
}

func (l *ledger) noteKept(p records.Place, r *records.Record[line], value []byte) {
	if !l.isKept(r) {
		l.forgetKept(p)
		return
	}
	l.kept[p], l.keptChanged = bytes.Clone(value), true
}

func (l *ledger) forgetKept(p records.Place) {
	if _, is := l.kept[p]; is {
		delete(l.kept, p)
		l.keptChanged = true
	}
}

func (l *ledger) takeKeptChanged() (news bool) {
	news, l.keptChanged = l.keptChanged, false
	return news
}

// contradictions returns the wanted names that another writer has with another value.
func (l *ledger) contradictions() (all []Contradiction) {
	for p, theirs := range l.kept {
		if r := l.records.At(p); r.Obj.marks.has(isWanted) && r.Hash != r.Obj.want {
			all = append(all, Contradiction{Name: r.Name, Wanted: r.Obj.value, Theirs: theirs})
		}
	}
	return all
}

// finishKept notes that a write was not made, because this key of another writer is present.
func (l *ledger) finishKept(one part, kv *kvstore.KeyValue, owns func(int64) bool, now time.Time) {
	r := l.records.At(one.at)
	if one.epoch == l.epoch {
		// The event of an earlier write of ours is older than this key, and will be ignored.
		if a, is := l.awaited[one.at]; is && kv.ModRevision > a.rev {
			l.eventArrived(one.at)
		}
		if !r.Obj.marks.has(isAwaited) {
			r.Obj.marks &^= isUncertain
		}
		if kv.ModRevision > r.Rev {
			l.setPresent(one.at, kv, owns)
		}
	}
	l.finish(one, unknown, 0, nil, now)
}
