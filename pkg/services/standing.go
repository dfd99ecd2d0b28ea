package services

// Standing says how the backends of a cluster are used. It is a filter on merging:
// the tables of services and of slices do not know it.
type Standing uint8

// The standings, each worse than the one before.
const (
	Full      Standing = iota // as those of any cluster
	Demoted                   // only where no cluster of full standing has a usable one
	Withdrawn                 // not there at all, unless no other cluster has a usable one
	Withheld                  // not at all, whatever others have
)

// String returns a word.
func (s Standing) String() string {
	return [...]string{"full", "demoted", "withdrawn", "withheld"}[s]
}

// reach is the worst standing that counts: everybody's up to the best one with
// which somebody has a usable backend. Without any usable backend all of them
// count but what is withheld, so that a policy takes nobody's last ones.
func (g *Global) reach() Standing {
	best, worst := Withdrawn, Full
	for _, p := range g.Parts {
		if p.Offers() && p.Standing < best && p.usable() {
			best = p.Standing
		}
		worst = max(worst, p.Standing)
		if best == Full {
			break
		}
	}
	if worst == Full { // nobody is anything else, as nearly always
		return Full
	}
	return best
}

// usable tells whether the cluster has a usable backend.
func (s *Service) usable() bool {
	for i := range s.Backends {
		if s.Backends[i].Usable() {
			return true
		}
	}
	return false
}

// listed tells whether the backends of a part are in use while standings count
// up to reach: those of a demoted cluster always are, and stand by.
func (s *Service) listed(reach Standing) bool {
	return s.Offers() && s.Standing <= max(reach, Demoted)
}

// InUse tells whether the backends of a part are in use: offered, and neither
// withheld nor withdrawn.
func (g *Global) InUse(part *Service) bool { return part.listed(g.reach()) }
