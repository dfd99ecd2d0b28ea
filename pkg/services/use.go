package services

import (
	"iter"
	"net/netip"
)

// BackendUse is how the backends of a cluster are used. It is a filter on merging: the tables of services and of slices
// do not contain it.
type BackendUse uint8

// The uses, each worse than the one before.
const (
	Full      BackendUse = iota // like those of any cluster
	Demoted                     // only where no cluster in full use has a usable one
	Withdrawn                   // not at all, unless no other cluster has a usable one
	Withheld                    // never
)

// String returns the name of the use.
func (u BackendUse) String() string {
	return [...]string{"full", "demoted", "withdrawn", "withheld"}[u]
}

// bestUse is the limit of a service: its parts with a worse [BackendUse] get no traffic. It is the best use
// among the clusters that have a usable backend. If no cluster has one, it is [Withdrawn], so that
// the policy never removes the last backends; withheld parts are always excluded.
func (g *Global) bestUse() BackendUse {
	best, worst := Withdrawn, Full
	for _, p := range g.Parts {
		if p.Offers() && p.Use < best && p.has(Conditions.Usable) {
			best = p.Use
		}
		worst = max(worst, p.Use)
		if best == Full {
			break
		}
	}
	if worst == Full { // all clusters are in full use, which is usual
		return Full
	}
	return best
}

// has reports whether the cluster has a backend whose conditions match state.
func (s *Service) has(state func(Conditions) bool) bool {
	for i := range s.Backends {
		if state(s.Backends[i].Conditions) {
			return true
		}
	}
	return false
}

// listed reports whether a part is listed when reach is the limit ([Global.bestUse]). A demoted part always is, as a
// standby without traffic.
func (s *Service) listed(reach BackendUse) bool {
	return s.Offers() && s.Use <= max(reach, Demoted)
}

// InUse reports whether the backends of a part are in use: offered, and neither
// withheld nor withdrawn.
func (g *Global) InUse(part *Service) bool { return part.listed(g.bestUse()) }

// inUse iterates over the parts whose backends are in use.
func (g *Global) inUse() iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		reach := g.bestUse()
		for _, p := range g.Parts {
			if p.listed(reach) && !yield(p) {
				return
			}
		}
	}
}

// Backends iterates over the backends in use with their parts, by cluster and then by address. Each address comes once
// for a cluster.
func (g *Global) Backends() iter.Seq2[*Service, Backend] {
	return func(yield func(*Service, Backend) bool) {
		for p := range g.inUse() {
			for _, b := range p.Backends {
				if !yield(p, b) {
					return
				}
			}
		}
	}
}

// NumBackends returns the number of backends in use.
func (g *Global) NumBackends() (n int) {
	for p := range g.inUse() {
		n += len(p.Backends)
	}
	return n
}

// HasBackend reports whether the address is a backend in use.
func (g *Global) HasBackend(addr netip.Addr) bool {
	for p := range g.inUse() {
		if _, ok := p.Backend(addr); ok {
			return true
		}
	}
	return false
}
