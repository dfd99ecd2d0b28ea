package store

import (
	"hash/maphash"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
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
	p, known := l.records.findText(name)
	if !known {
		return true
	}
	r := l.records.at(p)
	if r.obj.is.has(isDirty | isFlying | isAwaited) {
		return false
	}
	return r.obj.is.has(isWanted) || !r.obj.is.has(isThere)
}

// refusal is why the write of a name was refused the last time; nil when it was not.
func (l *ledger) refusal(name string) error {
	p, known := l.records.findText(name)
	if !known {
		return nil
	}
	return l.failures.of[p].why
}

// proof is what to recall of the past. Of shared keys only our own are known: the
// one written last is the proof, if there is any.
func (l *ledger) proof(prefix string) (p proof, ok bool) {
	p = proof{prefix: prefix}
	if l.shared && l.there == 0 {
		return p, false
	}
	if l.shared || l.there > proofKeys {
		p.name = l.records.newest(thereLine)
		p.from = prefix + p.name
	}
	if l.shared {
		p.prefix = p.from
	}
	return p, true
}

// agrees tells whether the past is the one that is known.
func (l *ledger) agrees(p proof, past kvstore.Past) bool {
	if l.shared && len(past.Items) != 1 {
		return false
	}
	for _, kv := range past.Items {
		at, known := l.records.find(kv.Key)
		if !known {
			return false
		}
		r := l.records.at(at)
		if !thereLine(r) || r.rev != kv.ModRevision || r.hash != maphash.Bytes(l.seed, kv.Value) {
			return false
		}
	}
	return l.shared || l.records.first(p.name, past, thereLine)
}

func thereLine(r *record[line]) bool { return r.obj.is.has(isThere) }
