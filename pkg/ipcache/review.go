package ipcache

import "slices"

// inside reports whether a place is within another one.
func (p place) inside(outer place) bool {
	return p.bits >= outer.bits && p.at.masked(outer.bits) == outer.at
}

// counted takes in that a claim of a node was added to its prefix (+1) or removed (-1). Claims of endpoints are
// ignored.
func (c *core) counted(e *Entry, by int) {
	switch {
	case e == nil || e.kind < KindNode:
	case e.announces():
		if !c.networks.count(e, by) {
			return
		}
		c.reviews.ask(e, task{e.place(), reachInside}) // the network has another owner
		if !e.remote() {                               // prefixes that contain an own network are judged by it too
			c.askAround(e)
		}
	case e.kind == KindNode && c.atStake(e.place()):
		c.reviews.ask(e, task{e.place(), reachEndpoints}) // the allowed identities of these depend on it
	}
}

// askAround asks for a review of the claims on prefixes that contain the entry's prefix.
func (c *core) askAround(e *Entry) {
	p := e.place()
	shortest := uint8(0)
	if p.at.is4() {
		shortest = mappedBits
	}
	for bits := shortest; bits < p.bits; bits++ {
		if around := (place{p.at.masked(bits), bits}); c.routes.get(around) != nil || c.strays.any(around) {
			c.reviews.ask(e, task{around, reachPlace})
		}
	}
}

// atStake reports whether a place has claims that do not come from nodes.
func (c *core) atStake(p place) (found bool) {
	c.endpointsAt(p, func(*Entry, bool) { found = true })
	return found
}

// endpointsAt calls visit with the claims on an address that do not come from nodes. A cluster has at most two of them,
// by their kinds.
func (c *core) endpointsAt(p place, visit func(e *Entry, counts bool)) {
	c.groupsAt(p, func(e *Entry) bool {
		if !e.fromNode() {
			visit(e, true)
		}
		return true
	})
	if c.strays.any(p) {
		c.strays.all.groups(p, func(s Stray) bool {
			if s.Barred && !s.Entry.fromNode() {
				visit(s.Entry, false)
			}
			return true
		})
	}
}

// groupsAt calls visit with the strongest claims that count at a place, one of each cluster, source and kind; the
// winner is the first.
func (c *core) groupsAt(p place, visit func(*Entry) bool) {
	winner := c.routes.get(p)
	if winner == nil {
		return
	}
	if _, contested := c.contests.Get(contest{place: p}); !contested {
		visit(winner)
		return
	}
	c.rivals.groups(p, visit)
}

// proceed judges some claims of a review, about as many as there are units. It returns how many units are left and
// whether the review is done. The small cost of the review itself is subtracted too.
func (c *core) proceed(r *review, units int) (left int, done bool) {
	type judged struct {
		claim  *Entry
		counts bool
	}
	var again []judged
	take := func(e *Entry, counts bool) bool {
		if !r.covers(e.place()) || len(again) == units {
			return false
		}
		again = append(again, judged{e, counts})
		return true
	}
	switch {
	case r.reach == reachEndpoints:
		c.endpointsAt(r.within, func(e *Entry, counts bool) { again = append(again, judged{e, counts}) })
	case r.barred:
		c.strays.all.tree.Ascend(Stray{Entry: r.from}, func(s Stray) bool { return take(s.Entry, !s.Barred) })
	default:
		c.claimsFrom(r.from, func(e *Entry) bool { return take(e, true) })
	}
	switch {
	case r.reach == reachEndpoints:
		done = true
	case len(again) == units:
		r.from = again[units-1].claim
	case !r.barred:
		r.from, r.barred = strongest(r.within), true
	default:
		done = true
	}
	for _, one := range slices.Backward(again) { // the losers first, so that the winner changes only once
		c.judgeAgain(one.claim, one.counts)
	}
	return max(units-len(again)-reviewCost, 0), done
}

// claimsFrom calls visit with the claims that count, in the order of their places, starting at from.
func (c *core) claimsFrom(from *Entry, visit func(*Entry) bool) {
	c.winners.Ascend(from, func(winner *Entry) bool {
		p := winner.place()
		if _, contested := c.contests.Get(contest{place: p}); !contested {
			return visit(winner)
		}
		more, first := true, winner
		if from.place() == p {
			first = from
		}
		c.rivals.at(first, func(e *Entry) bool { more = visit(e); return more })
		return more
	})
}

// judgeAgain judges a claim again: whether it counts may have changed.
func (c *core) judgeAgain(e *Entry, counts bool) {
	b := c.judge(e)
	bars := c.networks.bars(b)
	if b.broken() {
		c.strays.put(Stray{e, b, bars})
	} else {
		c.strays.drop(e)
	}
	switch {
	case bars && counts:
		c.update(e.place(), e, nil)
	case !bars && !counts:
		c.update(e.place(), nil, e)
	}
}

// judge returns the rule that a claim breaks.
func (c *core) judge(e *Entry) Breach {
	return c.networks.judge(e, func() (found bool) {
		c.groupsAt(e.place(), func(o *Entry) bool {
			found = o.kind == KindNode && same(o.cluster, e.cluster)
			return !found
		})
		return found
	})
}
