package syncstore

import (
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// checkpoint is what a ledger had not yet written when it was made. It is reached
// when each of these names was written once, with the value that was wanted then or
// with a later one, and the kvstore has told of it. What the owner changes after that
// moment does not delay it, so it is reached under any rate of changes.
//
// What is found lost meanwhile, although the owner wants it, has to be written as well.
type checkpoint struct {
	owed records.Bitset // places that are not done
	n    int            // how many these are
	// sent are those of them whose write is under way and counts, awaited those with
	// such a write that was acknowledged, and of which no event has told yet.
	sent, awaited records.Bitset
	// void: it cannot be reached any more. A list has begun, leases have ended, or the
	// owner gives everything anew.
	void bool
}

func (c *checkpoint) reached() bool { return !c.void && c.n == 0 }

func (c *checkpoint) owe(p records.Place) {
	if !c.owed.Has(p) {
		c.owed.Set(p)
		c.n++
	}
	c.sent.Clear(p)
	c.awaited.Clear(p)
}

// pay notes that a place is done, and tells whether it was the last one.
func (c *checkpoint) pay(p records.Place) (last bool) {
	if !c.owed.Has(p) {
		return false
	}
	c.owed.Clear(p)
	c.sent.Clear(p)
	c.awaited.Clear(p)
	c.n--
	return c.n == 0
}

// given tells whether it is known what is there and what is wanted.
func (l *ledger) given() bool { return l.listed && l.complete }

// checkpoint makes one of this moment; nil while not everything is given. It is kept
// up until it is left.
func (l *ledger) checkpoint() *checkpoint {
	if !l.given() {
		return nil
	}
	c := &checkpoint{}
	l.checkpoints = append(l.checkpoints, c)
	if l.clean() {
		return c
	}
	for p := range l.records.All() {
		r := l.records.At(p)
		if !r.Obj.is.has(isDirty | isFlying | isAwaited) {
			continue
		}
		c.owe(p)
		if !r.Obj.is.has(isFlying) && l.comes(p, r) {
			c.awaited.Set(p)
		}
	}
	return c
}

// leave ends a checkpoint that nobody waits for any more.
func (l *ledger) leave(c *checkpoint) {
	for i, one := range l.checkpoints {
		if one == c {
			l.checkpoints = append(l.checkpoints[:i:i], l.checkpoints[i+1:]...)
			return
		}
	}
}

// voidCheckpoints ends all of them.
func (l *ledger) voidCheckpoints() {
	for _, c := range l.checkpoints {
		c.void, l.news = true, true
	}
	l.checkpoints = nil
}

// pay notes that a name is as wanted now.
func (l *ledger) pay(p records.Place) {
	for _, c := range l.checkpoints {
		l.news = c.pay(p) || l.news
	}
}

// payAwaited notes that the event of a write has come.
func (l *ledger) payAwaited(p records.Place) {
	for _, c := range l.checkpoints {
		if c.awaited.Has(p) {
			l.news = c.pay(p) || l.news
		}
	}
}

// noteSent notes that a write begins, of what is wanted now: it counts.
func (l *ledger) noteSent(p records.Place) {
	for _, c := range l.checkpoints {
		if c.owed.Has(p) {
			c.sent.Set(p)
		}
	}
}

// noteLanded notes the end of a write. One that was made is the one that is awaited.
func (l *ledger) noteLanded(p records.Place, o outcome) {
	for _, c := range l.checkpoints {
		counts := c.sent.Has(p)
		c.sent.Clear(p)
		switch {
		case o != made:
		case counts:
			c.awaited.Set(p)
		default:
			c.awaited.Clear(p)
		}
	}
}

// lose notes that a name which is wanted is not there as it was, and that its owner
// has not done that.
func (l *ledger) lose(p records.Place) {
	if len(l.checkpoints) == 0 || !l.records.Has(p) {
		return
	}
	if is := l.records.At(p).Obj.is; !is.has(isWanted) || !is.has(isDirty) {
		return
	}
	for _, c := range l.checkpoints {
		c.owe(p)
	}
}

// isOwn tells whether an event is that of a write of ours, as far as is known while
// the write is under way. Leases that are not ours are those of others. It is asked
// for the checkpoints alone: without one it may tell anything.
func (l *ledger) isOwn(p records.Place, e *kvstore.Event, owns func(int64) bool) bool {
	if len(l.checkpoints) == 0 {
		return true
	}
	gone := e.Type == kvstore.EventDelete
	if !gone && !owns(e.Lease) {
		return false
	}
	r := l.records.At(p)
	if a, is := l.awaited[p]; is && e.ModRevision <= a.rev {
		return true
	}
	return r.Obj.is.has(isFlying) && r.Obj.is.has(isLeaving) == gone
}
