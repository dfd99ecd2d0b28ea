package services

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Selection describes to which of the backends in use Cilium's datapath in the own cluster sends traffic now (wire.md
// §4.4). Affinity divides them into two sides only: those of the local cluster, and the others. The use of backends
// divides them further: those of demoted clusters are a standby while others are usable. Status and explanations show
// it. For consumers of the view, the choice with zones and draining is backends.Choose.
type Selection struct {
	Local, Remote bool
	Why           string     // why one side gets no traffic; empty when both do
	BestUse       BackendUse // parts with a worse use get no traffic
}

// Selects reports whether traffic goes to the backends of a part that is in use.
func (s Selection) Selects(part *Service) bool {
	return part.Use <= s.BestUse && s.side(part)
}

// Takes reports whether traffic goes to a backend of a part.
func (s Selection) Takes(part *Service, b Backend) bool { return b.Usable() && s.Selects(part) }

// side reports whether the part's side gets traffic.
func (s Selection) side(part *Service) bool {
	if part.Local() {
		return s.Local
	}
	return s.Remote
}

// UsesRemotes reports whether a local service is a global one, which uses the backends of other clusters (wire.md §4.4,
// §4.5). This is independent of whether it shares its own backends, except that only a global service can be shared.
func (s *Service) UsesRemotes() bool { return s.Shared || s.IncludeExternal }

// Affinity returns which backends the local cluster's service prefers: "none", "local" or "remote". If there is no
// local service, or it is not a global one, the result is "none".
func (g *Global) Affinity() string {
	if l := g.local; l != nil && l.UsesRemotes() && l.Affinity != wire.AffinityNone {
		return string(l.Affinity)
	}
	return "none"
}

// Selection applies the affinity (wire.md §4.4) after the uses of backends. In a cluster without a service of that
// name, every backend is selected. It is for explanations: servers choose backends with backends.Choose.
func (g *Global) Selection() Selection {
	s := Selection{Local: true, Remote: true, BestUse: g.bestUse()}
	if g.local == nil {
		return s
	}
	affinity := wire.Affinity(g.Affinity())
	switch {
	case !g.local.UsesRemotes() || !g.Shared(): // when no cluster shares it, the others have nothing in use
		s.Remote, s.Why = false, "not used: the local service is not global"
	case affinity == wire.AffinityLocal && g.has(true, s.BestUse, Conditions.Active): // a terminating backend is not enough to exclude the others
		s.Remote, s.Why = false, "standing by: the affinity is local and a local backend is active"
	case affinity == wire.AffinityLocal && !g.has(false, s.BestUse, Conditions.Usable):
		s.Remote, s.Why = false, "standing by: the affinity is local and no remote backend is healthy"
	case affinity == wire.AffinityRemote && g.has(false, s.BestUse, Conditions.Usable):
		s.Local, s.Why = false, "standing by: the affinity is remote and a remote backend is healthy"
	case affinity == wire.AffinityRemote && !g.has(true, s.BestUse, Conditions.Usable):
		s.Local, s.Why = false, "standing by: the affinity is remote and no local backend is healthy"
	}
	return s
}

// has reports whether one side has a backend that counts and whose conditions match state.
func (g *Global) has(local bool, reach BackendUse, state func(Conditions) bool) bool {
	return slices.ContainsFunc(g.Parts, func(p *Service) bool {
		return p.Local() == local && p.Offers() && p.Use <= reach && p.has(state)
	})
}
