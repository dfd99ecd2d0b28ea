package services

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Selection says to which of the backends in use traffic goes now. Affinity
// divides them into two sides only: those of the local cluster, and the others.
// Standing divides them once more: those of demoted clusters stand by while others
// are usable.
type Selection struct {
	Local, Remote bool
	Why           string   // why one side gets no traffic; empty when both do
	Reach         Standing // a worse standing gets no traffic
}

// Selects tells whether traffic goes to the backends of a part that is in use.
func (s Selection) Selects(part *Service) bool {
	return part.Standing <= s.Reach && s.side(part)
}

// side tells whether the part's side gets traffic.
func (s Selection) side(part *Service) bool {
	if part.Local() {
		return s.Local
	}
	return s.Remote
}

// UsesRemotes tells whether a local service is a global one: whether it uses the
// backends of other clusters. It is when it is annotated as global; what it
// shares itself, and whether its namespace exports anything, is another matter
// (wire.md §4.4, §4.5), except that only a global service can be shared.
func (s *Service) UsesRemotes() bool { return s.Shared || s.IncludeExternal }

// Affinity says which backends the local cluster's service prefers: "none",
// "local" or "remote". It is a matter of that service alone, so without one it
// is "none", and so it is when that service is not a global one.
func (g *Global) Affinity() string {
	if l := g.local; l != nil && l.UsesRemotes() && l.Affinity != wire.AffinityNone {
		return string(l.Affinity)
	}
	return "none"
}

// Selection applies the affinity (wire.md §4.4) to what the standings leave. For
// an observer, a cluster that has no service of that name, every backend is
// selected.
func (g *Global) Selection() Selection {
	s := Selection{Local: true, Remote: true, Reach: g.reach()}
	if g.local == nil {
		return s
	}
	if !g.local.UsesRemotes() || !g.Shared() { // when nobody shares it, the others have nothing in use
		return s.onlyLocal("not used: the local service is not global")
	}
	switch wire.Affinity(g.Affinity()) {
	case wire.AffinityLocal:
		// A terminating local backend is healthy but does not hold the others off.
		if g.has(true, s.Reach, Conditions.Active) {
			return s.onlyLocal("standing by: the affinity is local and a local backend is active")
		}
		if !g.has(false, s.Reach, Conditions.Usable) {
			return s.onlyLocal("standing by: the affinity is local and no remote backend is healthy")
		}
	case wire.AffinityRemote:
		if g.has(false, s.Reach, Conditions.Usable) {
			return s.onlyRemote("standing by: the affinity is remote and a remote backend is healthy")
		}
		if !g.has(true, s.Reach, Conditions.Usable) {
			return s.onlyRemote("standing by: the affinity is remote and no local backend is healthy")
		}
	}
	return s
}

func (s Selection) onlyLocal(why string) Selection {
	s.Remote, s.Why = false, why
	return s
}

func (s Selection) onlyRemote(why string) Selection {
	s.Local, s.Why = false, why
	return s
}

// has tells whether one side has a backend that counts and is in such a state.
func (g *Global) has(local bool, reach Standing, state func(Conditions) bool) bool {
	for _, p := range g.Parts {
		if p.Local() != local || !p.Offers() || p.Standing > reach {
			continue
		}
		for i := range p.Backends {
			if state(p.Backends[i].Conditions) {
				return true
			}
		}
	}
	return false
}
