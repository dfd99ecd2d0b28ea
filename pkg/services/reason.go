package services

import "fmt"

// Reason says in a person's words what a part brings, or why nothing.
func (g *Global) Reason(part *Service) string {
	text := brings(part)
	if part.Sliced {
		text += ", known from its endpoint slices alone"
	}
	if !part.Offers() {
		return text
	}
	for _, stray := range part.Strays() {
		but := "no remote can have"
		if stray.Barred {
			but = "not used"
		}
		text += fmt.Sprintf("; %s: %s, such as %s: %s", but, backendCount(stray.Backends), stray.Example, stray.Why)
	}
	s := g.Selection()
	if by := standing(part, s.Reach); by != "" {
		text += "; " + by
	}
	if len(part.Backends) > 0 && part.listed(s.Reach) && !s.side(part) {
		text += "; " + s.Why
	}
	return text
}

// standing says what the standing of a part's cluster does to it; empty for
// nothing.
func standing(part *Service, reach Standing) string {
	const last = ", and no other cluster has a usable backend: its are used"
	switch {
	case part.Standing == Withheld:
		return fmt.Sprintf("withheld because %s has not answered for too long", part.Cluster)
	case part.Standing == Full || len(part.Backends) == 0:
		return ""
	case part.Standing == Demoted && part.Standing > reach:
		return fmt.Sprintf("standing by: %s is demoted because it is in doubt, and another cluster has a usable backend", part.Cluster)
	case part.Standing == Demoted:
		return fmt.Sprintf("%s is demoted because it is in doubt", part.Cluster) + last
	case part.Standing > reach:
		return fmt.Sprintf("withdrawn because %s was in doubt for too long, and another cluster has a usable backend", part.Cluster)
	default:
		return fmt.Sprintf("%s is withdrawn because it was in doubt for too long", part.Cluster) + last
	}
}

func brings(part *Service) string {
	n := backendCount(len(part.Backends))
	switch {
	case part.Local() && part.Shared:
		return fmt.Sprintf("the local service of %s with %s, shared with other clusters", part.Cluster, n)
	case part.Local():
		return fmt.Sprintf("the local service of %s with %s, not shared with other clusters", part.Cluster, n)
	case part.Shared:
		return fmt.Sprintf("shared by %s with %s", part.Cluster, n)
	case len(part.Backends) == 0:
		return fmt.Sprintf("not shared: %s publishes it with shared=false", part.Cluster)
	case len(part.Backends) == 1:
		return fmt.Sprintf("not shared: %s publishes it with shared=false, so its 1 backend is not used", part.Cluster)
	default:
		return fmt.Sprintf("not shared: %s publishes it with shared=false, so its %s are not used", part.Cluster, n)
	}
}

func backendCount(n int) string {
	switch n {
	case 0:
		return "no backends"
	case 1:
		return "1 backend"
	}
	return fmt.Sprintf("%d backends", n)
}
