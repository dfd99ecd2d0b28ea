package mcs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Precedence says whose export counts where clusters disagree: that of the own cluster, then that of the
// cluster that has counted until now, then the oldest one, and of equally old ones that of the first name.
// The zero value goes by age and name alone.
//
// KEP-1645 goes by age alone. But a remote writes the date of its export itself. So no date takes a service
// from the own cluster, nor from the cluster that the import follows; and it decides no further than what
// the own cluster knows: an export is not older than its cluster is known, and not of the future.
type Precedence struct {
	Own    string // the own cluster
	Winner string // of the remote clusters the one that has counted until now; empty: none
	// Seen tells since when a cluster is known; nil, or the zero time: not known.
	Seen func(cluster string) time.Time
	Now  time.Time // the zero time: not known
}

// Sort sorts exports of one service by how much they count.
func (p Precedence) Sort(exports []*services.Export) {
	slices.SortFunc(exports, func(a, b *services.Export) int {
		return cmp.Or(p.rank(a)-p.rank(b), p.since(a).Compare(p.since(b)), strings.Compare(a.Cluster, b.Cluster))
	})
}

// Order are the clusters of exports, by how much they count.
func (p Precedence) Order(exports []*services.Export) (clusters []string) {
	exports = slices.Clone(exports)
	p.Sort(exports)
	for _, e := range exports {
		clusters = append(clusters, e.Cluster)
	}
	return clusters
}

func (p Precedence) rank(e *services.Export) int {
	switch {
	case p.isOwn(e):
		return 0
	case p.Winner != "" && e.Cluster == p.Winner:
		return 1
	}
	return 2
}

func (p Precedence) isOwn(e *services.Export) bool { return p.Own != "" && e.Cluster == p.Own }

// since is the date of an export, within what the own cluster knows.
func (p Precedence) since(e *services.Export) time.Time {
	t := e.Created
	if p.isOwn(e) {
		return t
	}
	if p.Seen != nil {
		if seen := p.Seen(e.Cluster); t.Before(seen) {
			t = seen
		}
	}
	if !p.Now.IsZero() && t.After(p.Now) {
		t = p.Now
	}
	return t
}

// why says why the export of the winner counts, and not that of a rival.
func (p Precedence) why(winner, rival *services.Export) string {
	switch at := p.since(winner).UTC().Format(time.RFC3339); {
	case p.isOwn(winner):
		return "it is the own cluster, whatever the age of its export"
	case p.rank(winner) < p.rank(rival):
		return "the import followed it before, whatever the age of other exports"
	case p.since(winner).Equal(p.since(rival)):
		return "of the oldest exports, of " + at + ", its name is the first"
	default:
		return "its export is the oldest, since " + at
	}
}
