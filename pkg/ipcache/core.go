package ipcache

import "github.com/tidwall/btree"

// Op is one change of the claims: Old is withdrawn and New is made, in one step. Either may be nil.
// What counts of Old is whose claim it is, not what it said.
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

// core is the pure part: claims in, winners out. It has neither a lock nor a clock.
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

// apply does one op. A move from one prefix to another is two changes.
func (c *core) apply(op Op) {
	old, add := claimed(op.Old), claimed(op.New)
	if c.strays.all.tree.Len() > 0 && old != nil && !(add != nil && old.again(add)) {
		c.strays.drop(old)
	}
	if add != nil {
		if b := c.judge(add); b.broken() {
			c.applyStray(old, add, b)
			return
		}
		if c.strays.all.tree.Len() > 0 {
			c.strays.drop(add)
		}
	}
	c.move(old, add)
}

// again reports whether both are one claim on one prefix, with whatever contents.
func (e *Entry) again(o *Entry) bool { return e.place() == o.place() && e.same(o) }

// applyStray does an op whose new claim breaks a rule. One that does not count
// takes with it what was claimed before.
func (c *core) applyStray(old, add *Entry, b Breach) {
	bars := c.networks.bars(b)
	if was, known := c.strays.find(add); known && was.Entry.equal(add) {
		add = was.Entry // unchanged: keep the one that readers have
	}
	c.strays.put(Stray{add, b, bars})
	if !bars {
		c.move(old, add)
		return
	}
	c.update(add.place(), add, nil)
	if old != nil && !old.again(add) {
		c.update(old.place(), old, nil)
	}
}

// move withdraws a claim and makes another one; either may be nil.
func (c *core) move(old, add *Entry) {
	if old != nil && add != nil && old.place() == add.place() {
		c.update(old.place(), old, add)
		return
	}
	if add != nil {
		c.update(add.place(), nil, add)
	}
	if old != nil {
		c.update(old.place(), old, nil)
	}
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
func (c *core) update(p place, old, add *Entry) {
	winner := c.routes.get(p)
	if winner == nil {
		if add != nil {
			c.claims++
			c.install(nil, add, false)
			c.counted(add, +1)
		}
		return
	}
	at, contested := c.contests.Get(contest{place: p})
	if !contested {
		if add == nil || add.same(winner) {
			c.replaceOnly(p, winner, old, add)
			return
		}
		at = contest{place: p, claims: 1}
		c.rivals.tree.Set(winner)
	}
	c.contend(at, winner, old, add)
}

// contend is update for a prefix that has several claims, or has them now.
func (c *core) contend(at contest, winner, old, add *Entry) {
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
		return
	}
	after, conflict := c.updateWinner(at)
	if after != winner {
		c.install(winner, after, conflict)
	} else {
		c.note(winner, after, conflict) // others lost or left
	}
	c.counted(gone, -1)
	c.counted(came, +1)
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

// replaceOnly is update for the usual case: the winner is alone, and stays, goes or is made again.
func (c *core) replaceOnly(p place, winner, old, add *Entry) {
	switch {
	case add != nil && !add.equal(winner):
		c.install(winner, add, false)
	case add == nil && old != nil && winner.same(old):
		c.claims--
		c.winners.Delete(winner)
		c.routes.remove(p)
		c.note(winner, nil, false)
		c.counted(winner, -1)
	}
}

func (c *core) install(before, e *Entry, conflict bool) {
	c.winners.Set(e)
	c.routes.set(e.place(), e)
	c.note(before, e, conflict)
}

// note ends a change: readers can see it from now on.
func (c *core) note(before, after *Entry, conflict bool) {
	c.revision++
	c.recent.put(c.revision, Change{Before: before, After: after, Conflict: conflict})
}
