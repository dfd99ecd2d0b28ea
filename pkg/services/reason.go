package services

import "fmt"

// Reason describes, for users, the backends of a part, or why it has none in use.
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
	if by := useReason(part, s.BestUse); by != "" {
		text += "; " + by
	}
	if len(part.Backends) > 0 && part.listed(s.BestUse) && !s.side(part) {
		text += "; " + s.Why
	}
	return text
}

// useReason describes the effect of the use of a cluster's backends on a part; empty for none.
func useReason(part *Service, reach BackendUse) string {
	const last = ", and no other cluster has a usable backend: its are used"
	switch {
	case part.Use == Withheld:
		return fmt.Sprintf("withheld because %s has not answered for too long", part.Cluster)
	case part.Use == Full || len(part.Backends) == 0:
		return ""
	case part.Use == Demoted && part.Use > reach:
		return fmt.Sprintf("standing by: %s is demoted because it is in doubt, and another cluster has a usable backend", part.Cluster)
	case part.Use == Demoted:
		return fmt.Sprintf("%s is demoted because it is in doubt", part.Cluster) + last
	case part.Use > reach:
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
	}
	text := fmt.Sprintf("not shared: %s publishes it with shared=false", part.Cluster)
	switch len(part.Backends) {
	case 0:
		return text
	case 1:
		return text + ", so its 1 backend is not used"
	}
	return text + fmt.Sprintf(", so its %s are not used", n)
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
