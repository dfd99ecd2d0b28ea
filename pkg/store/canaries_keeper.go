package store

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// This file is what Canaries learn of the kvstore: whether they are there.

// change changes canaries and tells who waits for them.
func (c *Canaries) change(f func(one *canary)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		f(one)
	}
	c.tell()
}

// leasesLost is told of keys whose lease has ended, in order.
func (c *Canaries) leasesLost(keys []string) {
	c.change(func(one *canary) {
		if _, is := slices.BinarySearch(keys, c.p.Dir+one.name); is {
			one.there = false
		}
	})
}

func (c *Canaries) begin() { c.change(func(one *canary) { one.rev = 0 }) }

func (c *Canaries) page(p kvstore.Page) {
	for i := range p.Items {
		c.apply(kvstore.Batch{Events: []kvstore.Event{{KeyValue: p.Items[i]}}})
	}
}

func (c *Canaries) done(at kvstore.Position) {
	c.change(func(one *canary) {
		if one.rev == 0 {
			one.there, one.rev = false, at.Revision
		}
	})
}

func (c *Canaries) apply(b kvstore.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		c.change(func(one *canary) {
			if c.p.Dir+one.name == string(e.Key) && e.ModRevision > one.rev {
				one.rev = e.ModRevision
				one.there = e.Type == kvstore.EventPut && c.p.Writer.Owns(e.Lease)
			}
		})
	}
}

func (c *Canaries) listed() {}

func (c *Canaries) follows(bool) {}
func (c *Canaries) lacks() bool  { return false }

// proof is none: there are few canaries, and a list is no trouble.
func (c *Canaries) proof() (proof, bool) { return proof{}, false }

func (c *Canaries) agrees(proof, kvstore.Past) bool { return false }
