package ipcache

import "slices"

// review is what has to be judged again because a network has another owner: the
// claims inside it, those that count and then those that do not.
type review struct {
	within place
	from   place // the next one to be looked at
	alone  bool  // the claims on this very place
	barred bool  // the second half
}

// covers tells whether a place is to be judged again.
func (r *review) covers(p place) bool {
	if r.alone {
		return p == r.within
	}
	return p.inside(r.within)
}

// reviewed is how many places are judged under one hold of the lock.
const reviewed = 1024

// inside tells whether a place is within another one.
func (p place) inside(outer place) bool {
	return p.bits >= outer.bits && p.at.masked(outer.bits) == outer.at
}

// joined and left note that a claim is among those of its prefix, or not any more.
func (c *core) joined(e *Entry) {
	switch {
	case e.shapes():
		if c.territory.joins(e) {
			c.moved(e)
		}
	case e.kind == KindNode && c.atStake(e.place()):
		c.ask(e.place())
	}
}

func (c *core) left(e *Entry) {
	switch {
	case e.shapes():
		if c.territory.leaves(e) {
			c.moved(e)
		}
	case e.kind == KindNode && c.atStake(e.place()):
		c.ask(e.place())
	}
}

// atStake tells whether others than a node's own claim may be at a place: the
// identities that these may have depend on it.
func (c *core) atStake(p place) bool {
	if len(c.strays.of(p)) > 0 {
		return true
	}
	winner := c.routes.get(p)
	if winner == nil || !winner.fromNode() {
		return winner != nil
	}
	rest, _ := c.contests.Get(contest{place: p})
	return slices.ContainsFunc(rest.losers, func(e *Entry) bool { return !e.fromNode() })
}

// moved notes that a network has another owner. Of the own cluster's it matters also
// to what contains it.
func (c *core) moved(e *Entry) {
	p := e.place()
	c.ask(p)
	if !e.remote() {
		c.askAround(p)
	}
}

// askAround notes that the claims on what contains a place are to be judged again.
func (c *core) askAround(p place) {
	shortest := uint8(0)
	if p.at.is4() {
		shortest = mappedBits
	}
	for bits := shortest; bits < p.bits; bits++ {
		if around := (place{p.at.masked(bits), bits}); c.routes.get(around) != nil || len(c.strays.of(around)) > 0 {
			c.plan(review{within: around, from: around, alone: true})
		}
	}
}

// ask notes that the claims within a place are to be judged again.
func (c *core) ask(p place) { c.plan(review{within: p, from: p}) }

func (c *core) plan(r review) {
	c.asks++
	for i := range c.asked {
		if c.asked[i].within == r.within && c.asked[i].alone == r.alone { // it begins anew
			c.asked[i] = r
			return
		}
	}
	c.asked = append(c.asked, r)
}

// resume goes on with the reviews and tells whether there is more to do.
func (c *core) resume() (more bool) {
	if len(c.asked) == 0 {
		return false
	}
	r := &c.asked[0]
	var places []place
	take := func(p place) bool {
		if !r.covers(p) || len(places) == reviewed {
			return false
		}
		places = append(places, p)
		return true
	}
	if r.barred {
		c.strays.at.Ascend(strayPlace{place: r.from}, func(s strayPlace) bool { return take(s.place) })
	} else {
		c.winners.Ascend(&Entry{at: r.from.at, bits: r.from.bits}, func(e *Entry) bool { return take(e.place()) })
	}
	switch {
	case len(places) == reviewed:
		r.from = places[reviewed-1]
		places = places[:reviewed-1]
	case !r.barred:
		r.from, r.barred = r.within, true
	default:
		c.asked = slices.Delete(c.asked, 0, 1)
	}
	for _, p := range places {
		c.judgeAgain(p)
	}
	return len(c.asked) > 0
}

// judgeAgain judges all claims at one place.
func (c *core) judgeAgain(p place) {
	before := c.claimsAt(p)
	all := slices.Clone(before)
	for _, s := range c.strays.of(p) {
		if s.Barred {
			all = append(all, s.Entry)
		}
	}
	var after []*Entry
	var now []Stray
	for _, e := range all {
		b := c.judge(e)
		bars := c.territory.bars(b)
		if b.broken() {
			now = append(now, Stray{e, b, bars})
		}
		if !bars {
			after = append(after, e)
		}
	}
	c.strays.set(p, now)
	slices.SortFunc(after, (*Entry).Compare)
	c.settle(p, before, after)
}

// judge says which rule a claim breaks.
func (c *core) judge(e *Entry) Breach {
	return c.territory.judge(e, func() bool {
		return slices.ContainsFunc(c.claimsAt(e.place()), func(o *Entry) bool { return o.kind == KindNode && same(o.cluster, e.cluster) })
	})
}

// claimsAt are the claims that count at a place, the winner first.
func (c *core) claimsAt(p place) []*Entry {
	winner := c.routes.get(p)
	if winner == nil {
		return nil
	}
	rest, _ := c.contests.Get(contest{place: p})
	return append([]*Entry{winner}, rest.losers...)
}
