package syncstore

import (
	"hash/maphash"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// This file is what a ledger says of what it has.

// clean tells whether everything is known to be as wanted.
func (l *ledger) clean() bool {
	return l.listed && l.complete && l.dirty == 0 && l.flying == 0 && len(l.awaited) == 0
}

// mark is called after each step, and notes that everything was written once.
func (l *ledger) mark() {
	if l.synced {
		return
	}
	if l.first == nil || l.first.void {
		l.first = l.checkpoint()
	}
	if l.first != nil && l.first.reached() {
		l.leave(l.first)
		l.first, l.synced = nil, true
	}
}

// told tells whether who waits for a checkpoint is to be told of something.
func (l *ledger) told() (news bool) {
	news, l.news = l.news, false
	return news
}

// settled tells whether a name is known to be as wanted. One that is not wanted
// has to be gone.
func (l *ledger) settled(name string) bool {
	if !l.listed {
		return false
	}
	p, known := l.records.FindString(name)
	if !known {
		return true
	}
	r := l.records.At(p)
	if r.Obj.is.has(isDirty | isFlying | isAwaited) {
		return false
	}
	return r.Obj.is.has(isWanted) || !r.Obj.is.has(isThere)
}

// refusal is why the write of a name was refused the last time; nil when it was not.
func (l *ledger) refusal(name string) error {
	p, known := l.records.FindString(name)
	if !known {
		return nil
	}
	return l.failures.of[p].why
}

// proof is what to recall of the past. Of shared keys only our own are known: the
// one written last is the proof, if there is any.
func (l *ledger) proof(prefix string) (p follow.Proof, ok bool) {
	p = follow.Proof{Prefix: prefix}
	if l.shared && l.there == 0 {
		return p, false
	}
	if l.shared || l.there > follow.ProofKeys {
		p.Name = l.records.Newest(thereLine)
		p.From = prefix + p.Name
	}
	if l.shared {
		p.Prefix = p.From
	}
	return p, true
}

// agrees tells whether the past is the one that is known.
func (l *ledger) agrees(p follow.Proof, past kvstore.Past) bool {
	if l.shared && len(past.Items) != 1 {
		return false
	}
	for _, kv := range past.Items {
		at, known := l.records.Find(kv.Key)
		if !known {
			return false
		}
		r := l.records.At(at)
		if !thereLine(r) || r.Rev != kv.ModRevision || r.Hash != maphash.Bytes(l.seed, kv.Value) {
			return false
		}
	}
	return l.shared || l.records.Agrees(p.Name, past, thereLine)
}

func thereLine(r *records.Record[line]) bool { return r.Obj.is.has(isThere) }
