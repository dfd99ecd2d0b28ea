package faults

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// struck is a fault with its time: from when it had begun until it was about to end, which is zero until then. claims
// are those of the cluster meanwhile.
type struck struct {
	fault    fault
	from, to time.Time
	claims   int
}

// lasts reports whether the fault is in force at that time.
func (s struck) lasts(at time.Time) bool {
	return !at.Before(s.from) && (s.to.IsZero() || at.Before(s.to))
}

// strikes are the kinds of faults that a witness may suffer. A cluster with an away fault
// cannot be asked as long as the fault lasts.
func (h *witness) strikes() []fault {
	var all []fault
	for _, name := range []string{"kill", "freeze", "reset", "black-hole", "refuse", "slicer"} {
		f, known := faultOf(name)
		if !known {
			panic("no fault is called " + name)
		}
		all = append(all, f)
	}
	lock := func(c *cluster) { c.proxies[c.open].lock() }
	unlock := func(c *cluster) { c.proxies[c.open].unlock() }
	return append(all, fault{
		name: "delay",
		begin: func(c *cluster, s step) {
			c.proxies[c.open].spoil("latency", map[string]int{"latency": 50 + s.rng().IntN(250), "jitter": 30})
		},
		end: func(c *cluster, _ step) { c.proxies[c.open].relieve() },
	}, fault{
		name: "compact", away: true,
		begin: func(c *cluster, _ step) { lock(c) },
		end:   func(c *cluster, _ step) { h.forget(); unlock(c) },
	}, fault{
		name: "wipe", away: true,
		begin: func(c *cluster, _ step) {
			lock(c)
			h.wipes++
			h.wipe((h.index+h.wipes)%3 == 0, (h.index+h.wipes)%3 == 1)
		},
		end: func(c *cluster, _ step) { unlock(c) },
	})
}

// suffer begins or ends a fault when it is due. claims is the number of claims about the cluster so far.
func (h *witness) suffer(rng *rand.Rand, claims int) {
	switch {
	case time.Now().Before(h.due):
	case h.lasting != nil:
		h.relent(claims)
		h.due = time.Now().Add(bound/2 + time.Duration(rng.Int64N(int64(bound))))
	default:
		if len(h.kinds) == 0 {
			h.kinds = h.strikes()
			rng.Shuffle(len(h.kinds), func(i, j int) { h.kinds[i], h.kinds[j] = h.kinds[j], h.kinds[i] })
		}
		f := h.kinds[0]
		h.kinds, h.lasting = h.kinds[1:], &f
		f.begin(h.cluster, step{h.index, f.name, rng.Uint64()})
		h.struck = append(h.struck, struck{fault: f, from: time.Now(), claims: -claims})
		// Some end before the mesh has noticed.
		h.due = time.Now().Add(bound/4 + time.Duration(rng.Int64N(int64(7*bound/4))))
	}
}

// relent ends the present fault.
func (h *witness) relent(claims int) {
	s := &h.struck[len(h.struck)-1]
	s.claims += claims
	s.to = time.Now()
	h.lasting = nil
	s.fault.end(h.cluster, step{})
}

// rarest returns how often the rarest kind of fault occurred, and was noticed.
func rarest(all []*witness) int {
	n := map[string]int{}
	for _, f := range all[0].strikes() {
		n[f.name] = 0
	}
	for _, h := range all {
		for _, s := range h.struck {
			if !s.to.IsZero() && s.claims > 0 {
				n[s.fault.name]++
			}
		}
	}
	return slices.Min(slices.Collect(maps.Values(n)))
}
