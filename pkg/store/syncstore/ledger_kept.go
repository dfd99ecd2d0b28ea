package syncstore

import (
	"bytes"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// This file is what a ledger with keep knows of the keys of others: those that are
// tied to no lease. A write never replaces or deletes one, since its transaction
// looks once more.

// isKept tells whether what is there is another's and stays as it is.
func (l *ledger) isKept(r *records.Record[line]) bool {
	return l.keep && r.Obj.marks.has(isPresent) && r.Obj.lease == noLease
}

// noteKept keeps what another has.
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

// takeKeptChanged tells whether anything has changed of what contradicts.
func (l *ledger) takeKeptChanged() (news bool) {
	news, l.keptChanged = l.keptChanged, false
	return news
}

// contradictions are the names that another has with another value than the one
// that is wanted.
func (l *ledger) contradictions() (all []Contradiction) {
	for p, theirs := range l.kept {
		if r := l.records.At(p); r.Obj.marks.has(isWanted) && r.Hash != r.Obj.want {
			all = append(all, Contradiction{Name: r.Name, Wanted: r.Obj.value, Theirs: theirs})
		}
	}
	return all
}

// finishKept notes that a write was not made, since this is there.
func (l *ledger) finishKept(one part, kv *kvstore.KeyValue, owns func(int64) bool, now time.Time) {
	r := l.records.At(one.at)
	if one.epoch == l.epoch {
		if !r.Obj.marks.has(isAwaited) {
			r.Obj.marks &^= isUncertain
		}
		if kv.ModRevision > r.Rev {
			l.setPresent(one.at, kv, owns)
		}
	}
	l.finish(one, unknown, 0, nil, now)
}
