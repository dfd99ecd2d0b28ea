package services

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Selection says to which of the backends in use traffic goes now. Affinity
// divides them into two sides only: those of the local cluster, and the others.
type Selection struct {
	Local, Remote bool
	Why           string // why one side gets no traffic; empty when both do
}

// Selects tells whether traffic goes to the backends of a part that is in use.
func (s Selection) Selects(part *Service) bool {
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

// Selection applies the affinity (wire.md §4.4). For an observer, a cluster that
// has no service of that name, every backend is selected.
func (g *Global) Selection() Selection {
	if g.local == nil {
		return Selection{Local: true, Remote: true}
	}
	if !g.local.UsesRemotes() || !g.Shared() { // when nobody shares it, the others have nothing in use
		return Selection{Local: true, Why: "not used: the local service is not global"}
	}
	switch wire.Affinity(g.Affinity()) {
	case wire.AffinityLocal:
		// A terminating local backend is healthy but does not hold the others off.
		if g.has(true, Conditions.Active) {
			return Selection{Local: true, Why: "standing by: the affinity is local and a local backend is active"}
		}
		if !g.has(false, Conditions.Usable) {
			return Selection{Local: true, Why: "standing by: the affinity is local and no remote backend is healthy"}
		}
	case wire.AffinityRemote:
		if g.has(false, Conditions.Usable) {
			return Selection{Remote: true, Why: "standing by: the affinity is remote and a remote backend is healthy"}
		}
		if !g.has(true, Conditions.Usable) {
			return Selection{Remote: true, Why: "standing by: the affinity is remote and no local backend is healthy"}
		}
	}
	return Selection{Local: true, Remote: true}
}

// has tells whether one side has a backend in use that is in such a state.
func (g *Global) has(local bool, state func(Conditions) bool) bool {
	for _, p := range g.Parts {
		if p.Local() != local || !p.InUse() {
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
