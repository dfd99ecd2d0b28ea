package remotecluster

import (
	"context"
	"time"
)

// What follows is the rule for a cluster that stays away (wire.md §3.6): after
// the cache TTL without contact its service backends are taken out of use, and
// only these; they are used again when it is synced again.

// contact is the pure part of the rule.
type contact struct {
	ever     bool      // there was contact at some time
	lost     time.Time // since when there is none; zero while there is
	withheld time.Time // since when the backends are out of use; zero while they are in use
	times    int       // how often they were taken out of use
}

// made notes that the configuration was read.
func (k *contact) made() { k.ever, k.lost = true, time.Time{} }

// broke notes the end of a session, with contact or without.
func (k *contact) broke(now time.Time) {
	if k.ever && k.lost.IsZero() {
		k.lost = now
	}
}

// due returns when the backends are to be withheld; zero is never.
func (k *contact) due(ttl time.Duration) time.Time {
	if k.lost.IsZero() || !k.withheld.IsZero() {
		return time.Time{}
	}
	return k.lost.Add(ttl)
}

// expire withholds the backends if it is time, and tells whether it was.
func (k *contact) expire(ttl time.Duration, now time.Time) bool {
	if due := k.due(ttl); due.IsZero() || now.Before(due) {
		return false
	}
	k.withheld = now
	k.times++
	return true
}

// takeBack ends the withholding, if there is one.
func (k *contact) takeBack() (was bool) {
	was = !k.withheld.IsZero()
	k.withheld = time.Time{}
	return was
}

// expire has the backends withheld when their time has come, until ctx ends.
func (c *Cluster) expire(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, moved := c.nextExpiry()
		timer.Stop()
		if !due.IsZero() {
			timer.Reset(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-timer.C:
			c.withhold()
		}
	}
}

// nextExpiry returns when the backends are to be withheld, zero for never, and a
// channel that is closed when that may have changed.
func (c *Cluster) nextExpiry() (time.Time, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.contact.due(c.CacheTTL), c.moved
}

// withhold takes the backends out of use, unless there is contact again.
func (c *Cluster) withhold() { c.holdBack(timePassed{c.CacheTTL}) }

// takeBack makes withheld backends usable again.
func (c *Cluster) takeBack() { c.holdBack(allSynced{}) }

// holdBack takes in an event, and has the consumer follow when the backends are withheld
// by it, or not any longer.
func (c *Cluster) holdBack(e event) {
	c.holding.Lock()
	defer c.holding.Unlock()
	before, after := c.note(e)
	c.Changed()
	if withheld := !after.contact.withheld.IsZero(); withheld == before.contact.withheld.IsZero() {
		c.Consumer.Withhold(withheld)
	}
}
