package syncstore

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// This file is what Canaries learn of the kvstore: whether they are present.

// change changes canaries and notifies who waits for them.
func (c *Canaries) change(f func(one *canary)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		f(one)
	}
	c.notify()
}

// leasesLost takes the keys whose lease has ended, in order.
func (c *Canaries) leasesLost(keys []string) {
	c.change(func(one *canary) {
		if _, is := slices.BinarySearch(keys, c.p.Dir+one.name); is {
			one.present = false
		}
	})
}

// canaryKeeper is Canaries as their follower sees them.
type canaryKeeper struct{ *Canaries }

func (c canaryKeeper) Begin() { c.change(func(one *canary) { one.rev = 0 }) }

func (c canaryKeeper) Page(p kvstore.Page) {
	for i := range p.Items {
		c.Apply(kvstore.Batch{Events: []kvstore.Event{{KeyValue: p.Items[i]}}})
	}
}

func (c canaryKeeper) Done(at kvstore.Position) {
	c.change(func(one *canary) {
		if one.rev == 0 {
			one.present, one.rev = false, at.Revision
		}
	})
}

func (c canaryKeeper) Apply(b kvstore.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		c.change(func(one *canary) {
			if c.p.Dir+one.name == string(e.Key) && e.ModRevision > one.rev {
				one.rev = e.ModRevision
				one.present = e.Type == kvstore.EventPut && c.p.Writer.Owns(e.Lease)
			}
		})
	}
}

// Proof is none: there are few canaries, and a list is no trouble.
func (canaryKeeper) Proof() (follow.Proof, bool) { return follow.Proof{}, false }

func (canaryKeeper) Agrees(follow.Proof, kvstore.Past) bool { return false }
