package summary

import (
	"iter"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// mostServices are named at most of those that have the same loss.
const mostServices = 5

// Impact is what services have in clusters that cannot be confirmed.
type Impact struct {
	Clusters []string `json:"clusters" doc:"The clusters that are not connected, or whose data could not be confirmed for too long."`
	Loss
	Each []ClusterLoss `json:"each" doc:"The same for each of the clusters alone."`
}

// ClusterLoss is what services have in one cluster.
type ClusterLoss struct {
	Cluster string `json:"cluster"`
	Loss
}

// Loss is what services have in some clusters.
type Loss struct {
	Only   Losing `json:"only" doc:"Services with all their backends there."`
	Partly Losing `json:"partly" doc:"Services with some of their backends there."`
}

// Losing are the services with the same kind of loss.
type Losing struct {
	Services int      `json:"services"`
	Names    []string `json:"names" doc:"The first of them, as NAMESPACE/NAME; at most 5."`
	Backends int      `json:"backends" doc:"The number of their backends there."`
	Of       int      `json:"of" doc:"The number of all their backends."`
}

// affects tells whether what a cluster has may be gone. That of a cluster which answers is still there.
func affects(kind remotecluster.Trouble) bool {
	return slices.Contains([]remotecluster.Trouble{
		remotecluster.TroubleFailed, remotecluster.TroubleConnecting, remotecluster.TroubleLost, remotecluster.TroubleStale,
	}, kind)
}

// Affecting are the clusters with which services lose what they have there, in their order.
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
func ImpactOf(clusters []string, all iter.Seq[*services.Global]) *Impact {
	if len(clusters) == 0 {
		return nil
	}
	i := &Impact{Clusters: clusters, Loss: none(), Each: make([]ClusterLoss, len(clusters))}
	place := make(map[string]int, len(clusters))
	for at, name := range clusters {
		place[name], i.Each[at] = at, ClusterLoss{Cluster: name, Loss: none()}
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
		i.add(g, lost, sum)
		for at, n := range there {
			if n > 0 {
				i.Each[at].add(g, n, sum)
			}
		}
	}
	return i
}

func none() Loss { return Loss{Only: Losing{Names: []string{}}, Partly: Losing{Names: []string{}}} }

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

func (l *Loss) add(g *services.Global, lost, of int) {
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

// OfCluster is the loss with one cluster alone; nil when there is none.
func (i *Impact) OfCluster(name string) *Loss {
	if i != nil {
		for at := range i.Each {
			if i.Each[at].Cluster == name {
				return &i.Each[at].Loss
			}
		}
	}
	return nil
}
