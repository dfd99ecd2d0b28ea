package services

import (
	"fmt"
	"slices"
	"strings"
)

// Global is one service as the mesh has it. It is immutable and made by [Merge]. It holds the parts
// and nothing of theirs: what follows from them is derived when it is asked for.
type Global struct {
	Namespace, Name string
	// Parts are what the clusters bring to the service, also those that do not
	// count, sorted by cluster, one for each.
	Parts []*Service
	local *Service // one of Parts; nil when the local cluster has none
}

// Merge makes a global service of the parts that the clusters have in it, given
// in any order. It is nil when there is nothing to show: no cluster shares the
// service, and it is not one of the local cluster.
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

// String is a line for a person: "default/web: 3 backends, east 2, west 1".
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

// Local is the local cluster's own part; nil when it has none.
func (g *Global) Local() *Service { return g.local }

// Part is what a cluster brings to the service; nil when it has no part in it,
// or there is no service.
func (g *Global) Part(cluster string) *Service {
	if g != nil {
		i, found := slices.BinarySearchFunc(g.Parts, cluster, func(p *Service, cluster string) int { return strings.Compare(p.Cluster, cluster) })
		if found {
			return g.Parts[i]
		}
	}
	return nil
}
