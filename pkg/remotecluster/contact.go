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

// expire withholds the backends when their time has come, until ctx ends.
func (c *Cluster) expire(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, moved := c.track.nextExpiry(c.CacheTTL)
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

// withhold takes the backends out of use, unless there is contact again.
func (c *Cluster) withhold() {
	c.holding.Lock()
	defer c.holding.Unlock()
	if c.track.contacted(func(k *contact) bool { return k.expire(c.CacheTTL, time.Now()) }) {
		c.Withhold(true)
	}
}

// takeBack makes withheld backends usable again.
func (c *Cluster) takeBack() {
	c.holding.Lock()
	defer c.holding.Unlock()
	if c.track.contacted((*contact).takeBack) {
		c.Withhold(false)
	}
}
