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
	if part.Withheld {
		return text + fmt.Sprintf("; withheld because %s has not answered for too long", part.Cluster)
	}
	if s := g.Selection(); len(part.Backends) > 0 && !s.Selects(part) {
		return text + "; " + s.Why
	}
	return text
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
