package remotecluster

import (
	"context"
	"time"
)

// contact is the input of the rule for a cluster without contact (wire.md §3.6): after
// the cache TTL without contact its service backends, and nothing else, are taken out of
// use; they are used again when the cluster is synced again.
//
// This rule is apart from the disconnect policy (pkg/disconnect), because the two have no part in common.
// It counts from the end of a session, also for a cluster that was never synced; the policy
// counts from the last confirmation, and not while the process is suspended. It looks at no other
// cluster, waits for no patience, and ends at once. The state of the policy continues under it. A
// mirror has this rule and no policy. And its decision must be one step with the events of the
// cluster: the policy decides from a status that may be 200 ms old, and would withhold the
// backends of a cluster that is synced again.
type contact struct {
	ever     bool      // there was contact at least once
	lost     time.Time // since when there is no contact; zero while there is
	withheld time.Time // since when the backends are out of use; zero while they are in use
	times    int       // how often they were taken out of use
}

// made records that the configuration was read.
func (k *contact) made() { k.ever, k.lost = true, time.Time{} }

// due returns when the backends must be withheld; zero means never.
func (k *contact) due(ttl time.Duration) time.Time {
	if k.lost.IsZero() || !k.withheld.IsZero() {
		return time.Time{}
	}
	return k.lost.Add(ttl)
}

// expire withholds the backends when the cache TTL has passed, until ctx ends.
func (c *Cluster) expire(ctx context.Context) {
	for {
		c.mu.Lock()
		due := c.state.contact.due(c.CacheTTL)
		c.mu.Unlock()
		var expired <-chan time.Time // nil: never
		if !due.IsZero() {
			expired = time.After(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
		case <-expired:
			c.applyContact(timePassed(c.CacheTTL))
		}
	}
}

// applyContact applies an event, and calls the consumer's Withhold when the event begins or
// ends the withholding of the backends.
func (c *Cluster) applyContact(e event) {
	c.holding.Lock()
	defer c.holding.Unlock()
	before, after := c.note(e)
	c.Changed()
	if withheld := !after.contact.withheld.IsZero(); withheld == before.contact.withheld.IsZero() {
		c.Consumer.Withhold(withheld)
	}
}
