package syncstore

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/records"
)

// checkpoint has the names that a ledger had not yet written when the checkpoint was made. It is reached when
// each of these names was written once, with the value that was wanted at that time or a later one, and the
// event of that write has arrived. Names that are found lost before that are added. Later changes of the owner
// do not delay it.
type checkpoint struct {
	pending records.Bitset // places that are not done
	n       int            // number of these places
	// sent are the pending places whose write is in flight and counts. awaited are those whose counting write
	// was acknowledged and whose event has not arrived.
	sent, awaited records.Bitset
	// invalid: the checkpoint can no longer be reached, because a list has begun or leases have ended.
	invalid bool
}

func (c *checkpoint) isReached() bool { return !c.invalid && c.n == 0 }

func (c *checkpoint) add(p records.Place) {
	if !c.pending.Has(p) {
		c.pending.Set(p)
		c.n++
	}
	c.sent.Clear(p)
	c.awaited.Clear(p)
}

func (c *checkpoint) markDone(p records.Place) {
	if c.pending.Has(p) {
		c.pending.Clear(p)
		c.sent.Clear(p)
		c.awaited.Clear(p)
		c.n--
	}
}

// markSent notes that a write was sent. It is as wanted now, so it counts.
func (c *checkpoint) markSent(p records.Place) {
	if c.pending.Has(p) {
		c.sent.Set(p)
	}
}

// markAnswered notes the outcome of a write. The event of an acknowledged write is awaited.
func (c *checkpoint) markAnswered(p records.Place, o outcome) {
	counts := c.sent.Has(p)
	c.sent.Clear(p)
	switch {
	case o != acknowledged:
	case counts:
		c.awaited.Set(p)
	default:
		c.awaited.Clear(p)
	}
}

func (l *ledger) isLoaded() bool { return l.listed && l.complete }

// newCheckpoint returns a checkpoint of this moment, which is updated until it is dropped; nil while not
// everything is known.
func (l *ledger) newCheckpoint() *checkpoint {
	if !l.isLoaded() {
		return nil
	}
	c := &checkpoint{}
	l.checkpoints = append(l.checkpoints, c)
	if l.isClean() {
		return c
	}
	for p := range l.records.All() {
		r := l.records.At(p)
		if !isPending(r) {
			continue
		}
		c.add(p)
		if !r.Obj.marks.has(isInFlight) && l.willMatch(p, r) {
			c.awaited.Set(p)
		}
	}
	return c
}

func (l *ledger) dropCheckpoint(c *checkpoint) {
	if i := slices.Index(l.checkpoints, c); i >= 0 {
		l.checkpoints = slices.Delete(l.checkpoints, i, i+1)
	}
}

func (l *ledger) invalidateCheckpoints() {
	for _, c := range l.checkpoints {
		c.invalid = true
	}
	l.checkpoints = nil
}

func (l *ledger) markDone(p records.Place) {
	for _, c := range l.checkpoints {
		c.markDone(p)
	}
}

func (l *ledger) markEventArrived(p records.Place) {
	for _, c := range l.checkpoints {
		if c.awaited.Has(p) {
			c.markDone(p)
		}
	}
}

// markLost notes that a wanted name is no longer present as it was, for a reason other than a change of its
// owner.
func (l *ledger) markLost(p records.Place) {
	if len(l.checkpoints) == 0 || !l.records.Has(p) {
		return
	}
	if is := l.records.At(p).Obj.marks; !is.has(isWanted) || !is.has(isDirty) {
		return
	}
	for _, c := range l.checkpoints {
		c.add(p)
	}
}

// isOwn reports whether an event is that of our own write, as far as this is known while the write is in
// flight. An event with a lease that is not ours is that of another writer. Only checkpoints need the result.
func (l *ledger) isOwn(p records.Place, e *kvstore.Event, owns func(int64) bool) bool {
	if len(l.checkpoints) == 0 {
		return true
	}
	deletes := e.Type == kvstore.EventDelete
	if !deletes && !owns(e.Lease) {
		return false
	}
	if a, is := l.awaited[p]; is && e.ModRevision <= a.rev {
		return true
	}
	r := l.records.At(p)
	if !r.Obj.marks.has(isInFlight) || r.Obj.marks.has(isDeleting) != deletes {
		return false
	}
	r.Obj.marks |= isGuessed
	return true
}
