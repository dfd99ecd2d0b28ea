package backends

import (
	"iter"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Candidate is a usable backend with the criteria of the choice.
type Candidate struct {
	Part             *services.Service // of its cluster
	services.Backend                   // with only those ports that match
	Rank             int               // of its group: lower is better, and candidates of one group have the same rank
}

// Candidates iterates over the usable backends that have a port, by cluster and then by address. It allocates no
// memory, for callers that need a few backends of a large service. [Choice.Now] are the candidates of the least rank
// that do not terminate or, where all terminate, of the least rank, with each address once, from the first cluster.
func Candidates(g *services.Global, port Port, from Asker) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		if g == nil {
			return
		}
		ranks := ranksOf(g)
		port := port.within(g)
		for part, b := range Usable(g) {
			if !port.Any() {
				if b.Ports = port.of(b.Ports); len(b.Ports) == 0 {
					continue
				}
			}
			_, rank := ranks.side(part)
			if !yield(Candidate{part, b, int(part.Use)<<16 | int(rank)<<8 | int(from.nearness(part, &b))}) {
				return
			}
		}
	}
}

// InUse reports whether connections may go to usable backends of a part of a service.
func InUse(g *services.Global, part *services.Service) bool {
	return g.InUse(part) && !ranksOf(g).excludes(part)
}
