package services

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Global is one service as the mesh has it. It is immutable. It holds the
// parts and nothing of theirs: what follows from them is derived when it is
// asked for.
type Global struct {
	Namespace, Name string
	// Parts are the services of that name, also those that do not count,
	// sorted by cluster, one for each.
	Parts []*Service
}

// Merge makes a global service of everything that the clusters have under one
// namespace and name, given in any order. It is nil when there is nothing to
// show: no cluster shares the service, and it is not one of the local cluster.
func Merge(parts []*Service) *Global {
	if !slices.ContainsFunc(parts, counts) {
		return nil
	}
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b *Service) int { return strings.Compare(a.Cluster, b.Cluster) })
	return &Global{Namespace: sorted[0].Namespace, Name: sorted[0].Name, Parts: sorted}
}

// counts tells whether a part brings its backends: a remote one when its
// cluster shares it, the local one always (wire.md §4.4).
func counts(part *Service) bool { return part.Shared || part.Local() }

// FullName is "namespace/name".
func (g *Global) FullName() string { return fullName(g.Namespace, g.Name) }

// Shared tells whether at least one cluster shares the service.
func (g *Global) Shared() bool {
	return slices.ContainsFunc(g.Parts, func(p *Service) bool { return p.Shared })
}

// Local is the local cluster's own part; nil when it has none.
func (g *Global) Local() *Service {
	for _, p := range g.Parts {
		if p.Local() {
			return p
		}
	}
	return nil
}

// Affinity says which backends the local cluster's service prefers: "none",
// "local" or "remote". It is a matter of that service alone, so without one it
// is "none".
func (g *Global) Affinity() string {
	if local := g.Local(); local != nil && local.Affinity != "" {
		return string(local.Affinity)
	}
	return "none"
}

// Backends iterates over the backends in use with the parts that they come
// from, by cluster and then by address. Each address comes once for a cluster.
func (g *Global) Backends() iter.Seq2[*Service, Backend] {
	return func(yield func(*Service, Backend) bool) {
		for _, p := range g.Parts {
			if !counts(p) {
				continue
			}
			for _, b := range p.Backends {
				if !yield(p, b) {
					return
				}
			}
		}
	}
}

// NumBackends is the number of backends in use.
func (g *Global) NumBackends() int {
	n := 0
	for _, p := range g.Parts {
		if counts(p) {
			n += len(p.Backends)
		}
	}
	return n
}

// Reason says in a person's words what a part brings, or why nothing.
func (g *Global) Reason(part *Service) string {
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
