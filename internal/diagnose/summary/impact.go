package summary

import (
	"iter"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// mostServices are named at most of those that have the same loss.
const mostServices = 5

// affects reports whether the backends of a cluster may be gone. Those of a cluster that answers still exist.
func affects(kind api.TroubleKind) bool {
	return slices.Contains([]api.TroubleKind{
		api.TroubleFailed, api.TroubleConnecting, api.TroubleLost, api.TroubleStale,
	}, kind)
}

// Affecting returns the clusters whose backends services may lose, in their order.
func Affecting(all []Problem) []string {
	var names []string
	for _, p := range all {
		if affects(p.Kind) {
			names = append(names, p.Cluster)
		}
	}
	return names
}

// ImpactOf goes through the services, in their order, once; it is nil without such clusters. Backends count
// whether the disconnect policy still uses them or not: those that it has removed are lost as well.
func ImpactOf(clusters []string, all iter.Seq[*services.Global]) *api.Impact {
	if len(clusters) == 0 {
		return nil
	}
	i := &api.Impact{Clusters: clusters, Loss: none(), Each: make([]api.ClusterLoss, len(clusters))}
	place := make(map[string]int, len(clusters))
	for at, name := range clusters {
		place[name], i.Each[at] = at, api.ClusterLoss{Cluster: name, Loss: none()}
	}
	there := make([]int, len(clusters)) // the backends of one service, by cluster
	for g := range all {
		lost, sum := 0, 0
		clear(there)
		for _, p := range g.Parts {
			n := usable(p)
			if sum += n; n == 0 || p.Local() {
				continue
			}
			if at, is := place[p.Cluster]; is {
				there[at] = n
				lost += n
			}
		}
		if lost == 0 {
			continue
		}
		add(&i.Loss, g, lost, sum)
		for at, n := range there {
			if n > 0 {
				add(&i.Each[at].Loss, g, n, sum)
			}
		}
	}
	return i
}

func none() api.Loss {
	return api.Loss{Only: api.Losing{Names: []string{}}, Partly: api.Losing{Names: []string{}}}
}

// usable is how many backends a cluster brings that take connections while it is well.
func usable(p *services.Service) (n int) {
	if !p.Offers() {
		return 0
	}
	for i := range p.Backends {
		if p.Backends[i].Usable() {
			n++
		}
	}
	return n
}

func add(l *api.Loss, g *services.Global, lost, of int) {
	to := &l.Partly
	if lost == of {
		to = &l.Only
	}
	to.Services++
	to.Backends += lost
	to.Of += of
	if len(to.Names) < mostServices {
		to.Names = append(to.Names, g.FullName())
	}
}
