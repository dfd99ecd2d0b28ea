package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// asOfClaim is the status's claim about a resource, with the contents of the view at that time. A claim that equals the
// one before it is not kept.
type asOfClaim struct {
	of       *witness
	resource wire.Resource
	asked    time.Time // before the status was read
	taken    time.Time // after the view was read
	remotecluster.Freshness
	revision uint64 // of the view's table
	shown    []int  // numbers, by spot
}

// sampler collects claims as fast as it can.
type sampler struct {
	w         *world
	witnesses []*witness
	before    map[string]asOfClaim

	mu     sync.Mutex // guards everything below
	claims []asOfClaim
	made   map[*witness]int // the number of claims about it
	asked  int              // how often the status of a resource was read
	lie    error            // the first status that contradicts itself
	over   bool             // no more samples are collected
}

func (s *sampler) run(ctx context.Context) error {
	for waiting.Sleep(ctx, time.Millisecond) == nil {
		if !s.sample() {
			return nil
		}
	}
	return ctx.Err()
}

// sample reads the status first, because the view, read later, may only be newer. It
// reports whether to continue.
func (s *sampler) sample() bool {
	asked := time.Now()
	statuses := s.w.mesh.Clusters()
	txn := s.w.db.ReadTxn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	for _, h := range s.witnesses {
		st := find(statuses, h.name)
		for r, src := range st.Families {
			if slices.Contains(numberedKinds(), r) {
				s.take(txn, asOfClaim{of: h, resource: r, asked: asked, Freshness: src.Freshness})
			}
		}
	}
	return true
}

// take reads the view, and keeps the claim if it differs from the last one. mu is held.
func (s *sampler) take(txn statedb.ReadTxn, c asOfClaim) {
	s.asked++
	if age := c.asked.Sub(c.AsOf); c.State == remotecluster.FreshnessSynced && age > bound && s.lie == nil {
		s.lie = fmt.Errorf("%s of %s are said to be synced, and were confirmed %s before", c.resource, c.of.name, age)
	}
	where := c.of.name + " " + string(c.resource)
	before, sampled := s.before[where]
	if c.AsOf.IsZero() {
		delete(s.before, where)
		return
	}
	if c.revision = s.w.tableRevision(txn, c.resource); sampled && c.revision == before.revision {
		c.shown = before.shown
	} else {
		for _, at := range c.of.spots {
			c.shown = append(c.shown, s.w.number(txn, c.resource, c.of.name, at))
		}
	}
	c.taken = time.Now()
	if same := sampled && slices.Equal(c.shown, before.shown); !same || c.Freshness != before.Freshness {
		if same {
			c.shown = before.shown
		}
		s.claims = append(s.claims, c)
		s.made[c.of]++
	}
	s.before[where] = c
}

// tableRevision changes whenever the view of a resource does.
func (w *world) tableRevision(txn statedb.ReadTxn, r wire.Resource) uint64 {
	switch r {
	case wire.Nodes:
		return w.view.Nodes.Table().Revision(txn)
	case wire.Services:
		return w.view.Services.Exported().Revision(txn)
	case wire.EndpointSlices:
		return w.view.Services.Slices().Revision(txn)
	case wire.ServiceExports:
		return w.view.Services.ServiceExports().Revision(txn)
	case wire.Identities:
		return w.view.Identities.Table().Revision(txn)
	default:
		return w.view.IPs.Revision()
	}
}

// count returns the number of claims about each cluster, and of all, and the first status that contradicts itself.
func (s *sampler) count() (made map[*witness]int, all int, lie error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.made), len(s.claims), s.lie
}

// close ends the collection and returns all claims.
func (s *sampler) close() []asOfClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.claims
}
