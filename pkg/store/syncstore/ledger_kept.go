package syncstore

import (
	"bytes"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// isKept tells whether what is there is another's, tied to no lease, and stays as it is. A write
// never replaces or deletes one, since its transaction looks once more.
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

// contradictions are the wanted names that another has with another value.
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
