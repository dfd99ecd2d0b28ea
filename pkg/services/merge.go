package services

import (
	"fmt"
	"slices"
	"strings"
)

// Global is one service with the parts of all clusters. It is immutable and made by [Merge]. It holds only the parts;
// all other data is derived from them by its methods.
type Global struct {
	Namespace, Name string
	// Parts are the clusters' parts in the service, including those that do not count, sorted by cluster, one for each.
	Parts []*Service
	local *Service // one of Parts; nil when the local cluster has none
}

// Merge makes a global service of the clusters' parts in it, given in any order. It returns nil when no cluster shares
// the service, and the local cluster has none.
func Merge(parts []*Service) *Global {
	if !slices.ContainsFunc(parts, (*Service).Offers) {
		return nil
	}
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b *Service) int { return strings.Compare(a.Cluster, b.Cluster) })
	g := &Global{Namespace: sorted[0].Namespace, Name: sorted[0].Name, Parts: sorted}
	if i := slices.IndexFunc(sorted, (*Service).Local); i >= 0 {
		g.local = sorted[i]
	}
	return g
}

// FullName is "namespace/name".
func (g *Global) FullName() string { return fullName(g.Namespace, g.Name) }

// String returns a description such as "default/web: 3 backends, east 2, west 1".
func (g *Global) String() string {
	text := fmt.Sprintf("%s: %d backends", g.FullName(), g.NumBackends())
	for part := range g.inUse() {
		text += fmt.Sprintf(", %s %d", part.Cluster, len(part.Backends))
	}
	return text
}

// Shared reports whether at least one cluster shares the service.
func (g *Global) Shared() bool {
	return slices.ContainsFunc(g.Parts, func(p *Service) bool { return p.Shared })
}

// Local returns the local cluster's own part; nil when it has none.
func (g *Global) Local() *Service { return g.local }

// Part returns a cluster's part in the service; nil when it has none, or there is no service.
func (g *Global) Part(cluster string) *Service {
	if g != nil {
		i, found := slices.BinarySearchFunc(g.Parts, cluster, func(p *Service, cluster string) int { return strings.Compare(p.Cluster, cluster) })
		if found {
			return g.Parts[i]
		}
	}
	return nil
}
