package ipcache

import (
	"slices"

	"github.com/tidwall/btree"
)

// Op is one change of the claims: Old is withdrawn and New is made, in one
// step. Either may be nil. What counts of Old is whose claim it is, not what it
// said.
type Op struct {
	Old, New *Entry
}

// contest is what stands behind the winner of a prefix.
type contest struct {
	place  place
	losers []*Entry // sorted; never empty; replaced, never changed
	// conflict: more than one cluster is among the winner and the losers. That
	// one cluster claims a prefix in several ways, as endpoint and as node, is
	// no conflict.
	conflict bool
}

// core is the pure part: claims in, winners out. It has neither a lock nor a
// clock.
type core struct {
	winners  *btree.BTreeG[*Entry]
	contests *btree.BTreeG[contest]
	routes   routes // the winners again
	claims   int
	revision uint64 // grows with every change that a reader could see
	recent   ring   // the latest changes, one for each revision

	territory territory
	strays    strays
	asked     []review // what is to be judged again
	asks      uint64   // how often something was to be
}

func newCore() *core {
	opts := btree.Options{NoLocks: true}
	return &core{
		strays: newStrays(),
		routes: newRoutes(),
		winners: btree.NewBTreeGOptions(func(a, b *Entry) bool {
			return a.place().before(b.place())
		}, opts),
		contests: btree.NewBTreeGOptions(func(a, b contest) bool { return a.place.before(b.place) }, opts),
	}
}

// change is what became visible at one prefix: nil for nobody.
type change struct {
	before, after *Entry
}

// apply does one op. A move from one prefix to another is two changes.
func (c *core) apply(op Op) (changes [2]change) {
	old, add := claimed(op.Old), claimed(op.New)
	if c.strays.at.Len() > 0 {
		c.forgive(old)
	}
	if add != nil {
		if b := c.judge(add); b.broken() {
			return c.applyStray(old, add, b)
		}
		if c.strays.at.Len() > 0 {
			c.forgive(add)
		}
	}
	return c.move(old, add)
}

// forgive forgets that a claim was a stray, if it was.
func (c *core) forgive(e *Entry) {
	if e == nil {
		return
	}
	p := e.place()
	at := c.strays.of(p)
	if i := slices.IndexFunc(at, func(s Stray) bool { return s.Entry.same(e) }); i >= 0 {
		c.strays.set(p, slices.Delete(slices.Clone(at), i, i+1))
	}
}

// applyStray does an op whose new claim breaks a rule. One that does not count
// takes with it what was claimed before.
func (c *core) applyStray(old, add *Entry, b Breach) (changes [2]change) {
	p, bars := add.place(), c.territory.bars(b)
	at := slices.DeleteFunc(slices.Clone(c.strays.of(p)), func(s Stray) bool {
		if !s.Entry.same(add) {
			return false
		}
		if s.Entry.equal(add) {
			add = s.Entry // unchanged: keep the one that readers have
		}
		return true
	})
	c.strays.set(p, append(at, Stray{add, b, bars}))
	if !bars {
		return c.move(old, add)
	}
	changes[0] = c.update(p, add, nil)
	if old != nil && !(old.place() == p && old.same(add)) {
		changes[1] = c.update(old.place(), old, nil)
	}
	return changes
}

// move withdraws a claim and makes another one; either may be nil.
func (c *core) move(old, add *Entry) (changes [2]change) {
	switch {
	case old == nil && add == nil:
	case old == nil:
		changes[0] = c.update(add.place(), nil, add)
	case add == nil || old.place() == add.place():
		changes[0] = c.update(old.place(), old, add)
	default:
		changes[0] = c.update(add.place(), nil, add)
		changes[1] = c.update(old.place(), old, nil)
	}
	return changes
}

// claimed is nil for an entry that claims nothing.
func claimed(e *Entry) *Entry {
	if e == nil || !e.valid() {
		return nil
	}
	return e
}

// update withdraws old and makes add at one prefix. A claim that is made again
// replaces the one before.
func (c *core) update(p place, old, add *Entry) change {
	winner := c.routes.get(p)
	if winner == nil {
		if add != nil {
			c.claims++
			c.install(nil, add, false)
			c.joins(add)
		}
		return change{nil, add}
	}
	rest, contested := c.contests.Get(contest{place: p})
	if !contested && (add == nil || add.same(winner)) {
		return c.replaceOnly(p, winner, old, add)
	}
	claims := make([]*Entry, 0, len(rest.losers)+2)
	claims = append(append(claims, winner), rest.losers...)
	after := slices.DeleteFunc(slices.Clone(claims), func(e *Entry) bool {
		return (old != nil && e.same(old)) || (add != nil && e.same(add))
	})
	if add != nil {
		if i := slices.IndexFunc(claims, add.equal); i >= 0 {
			add = claims[i] // unchanged: keep the one that readers have
		}
		after = append(after, add)
	}
	slices.SortFunc(after, (*Entry).Compare)
	return c.settle(p, claims, after)
}

// replaceOnly is update for the usual case: the winner is alone, and stays or
// goes or is made anew.
func (c *core) replaceOnly(p place, winner, old, add *Entry) change {
	switch {
	case add == nil && (old == nil || !winner.same(old)):
		return change{winner, winner}
	case add == nil:
		c.claims--
		c.remove(p, winner, false)
		c.leaves(winner)
		return change{winner, nil}
	case add.equal(winner):
		return change{winner, winner}
	}
	c.install(winner, add, false)
	return change{winner, add}
}

// settle makes the claims on a prefix, in their order, those of after.
func (c *core) settle(p place, claims, after []*Entry) change {
	if slices.Equal(claims, after) {
		if len(claims) == 0 {
			return change{}
		}
		return change{claims[0], claims[0]}
	}
	c.claims += len(after) - len(claims)
	conflict := c.contend(p, after)
	defer c.compare(claims, after)
	if len(claims) == 0 {
		c.install(nil, after[0], conflict)
		return change{nil, after[0]}
	}
	ch := change{before: claims[0]}
	switch {
	case len(after) == 0:
		c.remove(p, claims[0], conflict)
	case after[0] != claims[0]:
		ch.after = after[0]
		c.install(claims[0], after[0], conflict)
	default:
		ch.after = after[0]
		c.note(ch.before, ch.after, conflict) // others lost or left
	}
	return ch
}

// compare notes which claims have come and gone at a prefix. Both lists are in order,
// and there may be thousands: as many nodes may announce one network.
func (c *core) compare(before, after []*Entry) {
	for len(before) > 0 || len(after) > 0 {
		order := -1
		switch {
		case len(before) == 0:
			order = 1
		case len(after) > 0:
			order = before[0].Compare(after[0])
		}
		if order < 0 {
			c.leaves(before[0])
		} else if order > 0 {
			c.joins(after[0])
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
}

func (c *core) joins(e *Entry) {
	if e.kind >= KindNode {
		c.joined(e)
	}
}

func (c *core) leaves(e *Entry) {
	if e.kind >= KindNode {
		c.left(e)
	}
}

// contend notes what stands behind the winner of a prefix, and tells whether
// there is a conflict now or was one before.
func (c *core) contend(p place, claims []*Entry) bool {
	now := contest{place: p}
	var before contest
	if len(claims) > 1 {
		now.losers = claims[1:]
		now.conflict = slices.ContainsFunc(now.losers, func(e *Entry) bool { return *e.cluster != *claims[0].cluster })
		before, _ = c.contests.Set(now)
	} else {
		before, _ = c.contests.Delete(now)
	}
	return before.conflict || now.conflict
}

func (c *core) install(before, e *Entry, conflict bool) {
	c.winners.Set(e)
	c.routes.set(e.place(), e)
	c.note(before, e, conflict)
}

func (c *core) remove(p place, e *Entry, conflict bool) {
	c.winners.Delete(e)
	c.routes.remove(p)
	c.note(e, nil, conflict)
}

// note ends a change: readers can see it from now on.
func (c *core) note(before, after *Entry, conflict bool) {
	c.revision++
	c.recent.put(c.revision, Change{Before: before, After: after, Conflict: conflict})
}
