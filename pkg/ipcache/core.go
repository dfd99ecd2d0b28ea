package ipcache

import "github.com/tidwall/btree"

// Op is one change of the claims: Old is removed and New is added, in one step. Either may be nil. Old identifies a
// claim; its other contents do not matter.
type Op struct {
	Old, New *Entry
}

// contest is a prefix with several claims.
type contest struct {
	place  place
	claims int
	// conflict: the claims are from more than one cluster. Claims of one cluster in several ways, as endpoint and as
	// node, are no conflict.
	conflict bool
}

// core is the pure part: it computes the winners of the claims. It has neither a lock nor a clock.
type core struct {
	winners  *btree.BTreeG[*Entry]
	contests *btree.BTreeG[contest]
	rivals   claimSet[*Entry] // all claims on the prefixes of contests, the winners too
	routes   routes           // the winners, by address
	claims   int
	revision uint64 // grows with every visible change
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

// apply applies one op. A move from one prefix to another is two changes.
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

// again reports whether both are the same claim on the same prefix; their contents may differ.
func (e *Entry) again(o *Entry) bool { return e.place() == o.place() && e.same(o) }

// applyStray applies an op whose new claim breaks a rule. If the new claim does not count, the old one is removed
// without a replacement.
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

// move removes a claim and adds another one; either may be nil.
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

// claimed returns nil for an entry without a valid prefix.
func claimed(e *Entry) *Entry {
	if e == nil || !e.valid() {
		return nil
	}
	return e
}

// update removes old and adds add at one prefix. If the claim exists already, it is replaced.
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

// contend is update for a prefix that has several claims, before or after it.
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
		c.note(winner, after, conflict) // only other claims were added or removed
	}
	c.counted(gone, -1)
	c.counted(came, +1)
}

// updateWinner stores the number of claims of a prefix, and finds the winner. conflict reports whether there is a
// conflict now, or was one before.
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

// replaceOnly is update for the usual case: the winner is the only claim, and stays, is removed or is replaced by its
// new version.
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

// note completes a change: from now on readers can see it.
func (c *core) note(before, after *Entry, conflict bool) {
	c.revision++
	c.recent.put(c.revision, Change{Before: before, After: after, Conflict: conflict})
}
