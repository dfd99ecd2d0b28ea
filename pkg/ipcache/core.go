package ipcache

import "github.com/tidwall/btree"

// Op is one change of the claims: Old is withdrawn and New is made, in one
// step. Either may be nil. What counts of Old is whose claim it is, not what it
// said.
type Op struct {
	Old, New *Entry
}

// contest is what is known of a prefix with several claims.
type contest struct {
	place  place
	claims int
	// conflict: more than one cluster is among them. That one cluster claims a prefix
	// in several ways, as endpoint and as node, is no conflict.
	conflict bool
}

// core is the pure part: claims in, winners out. It has neither a lock nor a
// clock.
type core struct {
	winners  *btree.BTreeG[*Entry]
	contests *btree.BTreeG[contest]
	rivals   claimSet[*Entry] // all claims on the prefixes of contests, the winners too
	routes   routes           // the winners again
	claims   int
	revision uint64 // grows with every change that a reader could see
	recent   ring   // the latest changes, one for each revision

	networks networks
	strays   strays
	reviews  reviews
}

func newCore() *core {
	opts := btree.Options{NoLocks: true}
	return &core{
		winners:  btree.NewBTreeGOptions(func(a, b *Entry) bool { return a.place().before(b.place()) }, opts),
		contests: btree.NewBTreeGOptions(func(a, b contest) bool { return a.place.before(b.place) }, opts),
		rivals:   newClaimSet(func(e *Entry) *Entry { return e }),
		routes:   routes{four: make(map[uint32]*Entry), six: make(map[address]*Entry)},
		strays: strays{
			all:     newClaimSet(func(e *Entry) Stray { return Stray{Entry: e} }),
			tallies: make(map[tallyKey]*Tally),
			sorted:  btree.NewBTreeGOptions(func(a, b Stray) bool { return a.compare(b) < 0 }, opts),
		},
		reviews: newReviews(),
	}
}

// change is what became visible at one prefix: nil for nobody.
type change struct {
	before, after *Entry
}

// apply does one op. A move from one prefix to another is two changes.
func (c *core) apply(op Op) (changes [2]change) {
	old, add := claimed(op.Old), claimed(op.New)
	if c.strays.all.tree.Len() > 0 && old != nil && !(add != nil && old.again(add)) {
		c.strays.drop(old)
	}
	if add != nil {
		if b := c.judge(add); b.broken() {
			return c.applyStray(old, add, b)
		}
		if c.strays.all.tree.Len() > 0 {
			c.strays.drop(add)
		}
	}
	return c.move(old, add)
}

// again tells whether both are one claim on one prefix, with whatever contents.
func (e *Entry) again(o *Entry) bool { return e.place() == o.place() && e.same(o) }

// applyStray does an op whose new claim breaks a rule. One that does not count
// takes with it what was claimed before.
func (c *core) applyStray(old, add *Entry, b Breach) (changes [2]change) {
	bars := c.networks.bars(b)
	if was, known := c.strays.find(add); known && was.Entry.equal(add) {
		add = was.Entry // unchanged: keep the one that readers have
	}
	c.strays.put(Stray{add, b, bars})
	if !bars {
		return c.move(old, add)
	}
	changes[0] = c.update(add.place(), add, nil)
	if old != nil && !old.again(add) {
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
			c.counted(add, +1)
		}
		return change{nil, add}
	}
	at, contested := c.contests.Get(contest{place: p})
	if !contested {
		if add == nil || add.same(winner) {
			return c.replaceOnly(p, winner, old, add)
		}
		at = contest{place: p, claims: 1}
		c.rivals.tree.Set(winner)
	}
	return c.contend(at, winner, old, add)
}

// contend is update for a prefix that has several claims, or has them now.
func (c *core) contend(at contest, winner, old, add *Entry) change {
	var gone, came *Entry
	changed := false
	if old != nil && !(add != nil && old.same(add)) {
		if gone, changed = c.rivals.tree.Delete(old); changed {
			at.claims--
			c.claims--
		}
	}
	if add != nil {
		switch was, known := c.rivals.tree.Get(add); {
		case !known:
			at.claims++
			c.claims++
			came, changed = add, true
			c.rivals.tree.Set(add)
		case !was.equal(add): // otherwise unchanged: keep the one that readers have
			changed = true
			c.rivals.tree.Set(add)
		}
	}
	if !changed {
		return change{winner, winner}
	}
	after, conflict := c.updateWinner(at)
	if after != winner {
		c.install(winner, after, conflict)
	} else {
		c.note(winner, after, conflict) // others lost or left
	}
	c.counted(gone, -1)
	c.counted(came, +1)
	return change{winner, after}
}

// updateWinner notes how many claims a prefix has now, and finds the winner. conflict:
// there is one now, or was one before.
func (c *core) updateWinner(at contest) (winner *Entry, conflict bool) {
	was := at.conflict
	at.conflict = false
	c.rivals.groups(at.place, func(e *Entry) bool {
		if winner == nil {
			winner = e
		}
		at.conflict = *e.cluster != *winner.cluster
		return !at.conflict
	})
	if at.claims == 1 {
		c.rivals.tree.Delete(winner)
		c.contests.Delete(at)
	} else {
		c.contests.Set(at)
	}
	return winner, was || at.conflict
}

// replaceOnly is update for the usual case: the winner is alone, and stays,
// goes or is made again.
func (c *core) replaceOnly(p place, winner, old, add *Entry) change {
	switch {
	case add == nil && (old == nil || !winner.same(old)):
		return change{winner, winner}
	case add == nil:
		c.claims--
		c.remove(p, winner, false)
		c.counted(winner, -1)
		return change{winner, nil}
	case add.equal(winner):
		return change{winner, winner}
	}
	c.install(winner, add, false)
	return change{winner, add}
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
