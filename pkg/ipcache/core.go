package ipcache

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
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
	prefix netip.Prefix // masked
	losers []*Entry     // sorted; never empty; replaced, never changed
}

// core is the pure part: claims in, winners out. It has neither a lock nor a
// clock.
type core struct {
	winners  *btree.BTreeG[*Entry]
	contests *btree.BTreeG[contest]
	routes   bart.Table[*Entry] // the winners again
	claims   int
	revision uint64 // grows with every change that a reader could see
}

func newCore() *core {
	opts := btree.Options{NoLocks: true}
	return &core{
		winners: btree.NewBTreeGOptions(func(a, b *Entry) bool {
			return before(a.Prefix(), b.Prefix())
		}, opts),
		contests: btree.NewBTreeGOptions(func(a, b contest) bool { return before(a.prefix, b.prefix) }, opts),
	}
}

// change is what became visible at one prefix: nil for nobody.
type change struct {
	before, after *Entry
}

// apply does one op. A move from one prefix to another is two changes.
func (c *core) apply(op Op) (changes [2]change) {
	switch {
	case op.Old == nil && op.New == nil:
	case op.Old == nil:
		changes[0] = c.update(op.New.Prefix(), nil, op.New)
	case op.New == nil || op.Old.Prefix() == op.New.Prefix():
		changes[0] = c.update(op.Old.Prefix(), op.Old, op.New)
	default:
		changes[0] = c.update(op.New.Prefix(), nil, op.New)
		changes[1] = c.update(op.Old.Prefix(), op.Old, nil)
	}
	return changes
}

// update withdraws old and makes add at one prefix. A claim that is made again
// replaces the one before.
func (c *core) update(p netip.Prefix, old, add *Entry) change {
	winner, known := c.routes.Get(p)
	if !known {
		if add != nil {
			c.claims++
			c.install(add)
		}
		return change{nil, add}
	}
	rest, contested := c.contests.Get(contest{prefix: p})
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
func (c *core) replaceOnly(p netip.Prefix, winner, old, add *Entry) change {
	switch {
	case add == nil && (old == nil || !winner.same(old)):
		return change{winner, winner}
	case add == nil:
		c.claims--
		c.remove(p, winner)
		return change{winner, nil}
	case add.equal(winner):
		return change{winner, winner}
	}
	c.install(add)
	return change{winner, add}
}

// settle makes the claims on a prefix, in their order, those of after.
func (c *core) settle(p netip.Prefix, claims, after []*Entry) change {
	if slices.Equal(claims, after) {
		return change{claims[0], claims[0]}
	}
	c.claims += len(after) - len(claims)
	if len(after) > 1 {
		c.contests.Set(contest{p, after[1:]})
	} else if len(claims) > 1 {
		c.contests.Delete(contest{prefix: p})
	}
	ch := change{before: claims[0]}
	switch {
	case len(after) == 0:
		c.remove(p, claims[0])
	case after[0] != claims[0]:
		ch.after = after[0]
		c.install(after[0])
	default:
		ch.after = after[0]
		c.revision++ // others lost or left
	}
	return ch
}

func (c *core) install(e *Entry) {
	c.winners.Set(e)
	c.routes.Insert(e.Prefix(), e)
	c.revision++
}

func (c *core) remove(p netip.Prefix, e *Entry) {
	c.winners.Delete(e)
	c.routes.Delete(p)
	c.revision++
}
