package simulate

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// lies are the times at which the kvstore of a cluster, whose owner is hostile, answers the other clusters wrongly. Their
// knowledge of that cluster is not judged then. Their knowledge of the others is.
type lies struct {
	mu    sync.Mutex
	now   bool      // guarded by mu
	until time.Time // the last one; guarded by mu
}

func (l *lies) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = true
}

func (l *lies) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.until = false, time.Now()
}

// since reports whether there was a lie since a time, or there is one now.
func (l *lies) since(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now || !l.until.IsZero() && !at.After(l.until)
}

// ever reports whether there was a lie.
func (l *lies) ever() bool { return l.since(time.Time{}) }

// hostile is the fault of a kvstore that answers the programs of other clusters wrongly now and then, until another server
// replaces it.
func hostile() fault {
	each := func(c *cluster, chance float64) {
		for _, other := range c.w.clusters {
			if to := other.routes[c.Own.ID-1]; other != c {
				to.change(func() { to.lies = chance })
			}
		}
	}
	return fault{
		name: "hostile", lasts: 2 * time.Minute,
		begin: func(c *cluster, r *rand.Rand) {
			c.lies.begin()
			each(c, []float64{0.5, 0.05, 0.005}[r.IntN(3)])
		},
		end: func(c *cluster, _ *rand.Rand) {
			each(c, 0)
			c.lies.end()
			c.Store.Replace()
		},
	}
}

// lie is the [memory.Liar] of the route: it breaks no rule of the protocol.
func (n *network) lie(_ string, answer any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lies == 0 {
		return
	}
	lying := func() bool { return n.rng.Float64() < n.lies }
	switch a := answer.(type) {
	case *kvstore.KeyValue:
		if lying() {
			n.falsify(a, *a)
		}
	case *kvstore.Page:
		a.Items = n.falsifyAll(a.Items, lying)
		if lying() {
			a.Left = n.rng.Int64N(1 << 40)
		}
	case *kvstore.Past:
		a.Items = n.falsifyAll(a.Items, lying)
	case *kvstore.Batch:
		n.falsifyEvents(a, lying)
	}
}

// falsifyAll leaves out some keys, but not all, invents some, and falsifies others.
func (n *network) falsifyAll(items []kvstore.KeyValue, lying func() bool) (all []kvstore.KeyValue) {
	for i, kv := range items {
		switch last := i == len(items)-1; {
		case !lying():
		case n.rng.IntN(2) == 0 && (!last || len(all) > 0):
			continue
		case n.rng.IntN(2) == 0 && !last:
			invented := kv
			invented.Key = append(slices.Clone(kv.Key), '0')
			if all = append(all, kv); bytes.Compare(invented.Key, items[i+1].Key) < 0 {
				all = append(all, invented)
			}
			continue
		default:
			n.falsify(&kv, items[n.rng.IntN(len(items))])
		}
		all = append(all, kv)
	}
	return all
}

// falsify gives a key another value, or an earlier revision.
func (n *network) falsify(kv *kvstore.KeyValue, other kvstore.KeyValue) {
	if n.rng.IntN(4) == 0 {
		kv.ModRevision = 1 + n.rng.Int64N(kv.ModRevision)
		return
	}
	kv.Value = spoiled(n.rng, kv.Value, other.Value)
}

// falsifyEvents leaves out some events, repeats some, and falsifies others.
func (n *network) falsifyEvents(b *kvstore.Batch, lying func() bool) {
	var all []kvstore.Event
	for _, e := range b.Events {
		if !lying() {
			all = append(all, e)
			continue
		}
		switch n.rng.IntN(4) {
		case 0: // left out
		case 1:
			all = append(all, e, e)
		case 2:
			if e.Type = kvstore.EventDelete - e.Type; e.Type == kvstore.EventDelete {
				e.Value, e.Created, e.Lease = nil, false, 0
			}
			all = append(all, e)
		case 3:
			e.Value = spoiled(n.rng, e.Value, b.Events[0].Value)
			all = append(all, e)
		}
	}
	b.Events = all
}
