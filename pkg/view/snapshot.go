package view

import (
	"context"
	"slices"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// Snapshot is one consistent state of everything at one position: what the changes up to
// there have made of it, neither more nor less. The tables of the [View] are read with
// Txn. Whoever was shown it and goes on from its position knows of each change what
// became of what he has. It keeps objects alive that were deleted since, so it should
// not be held for long.
type Snapshot struct {
	Position uint64
	Txn      statedb.ReadTxn
	IPs      *ipcache.Snapshot
	// Known is what was said of the clusters, by name, the own one included, right
	// before the snapshot; nil unless it is a [View.DatedSnapshot].
	Known map[string]remotecluster.Status

	polled map[int]any // what no table holds, by index of the kind, of those that were asked for
}

// Snapshot returns the state of this moment; of what no table holds ([Clusters] and
// [Health]) only of the kinds that it is asked for. The readers of the cache of addresses
// share a snapshot that may be some milliseconds old; here, one is waited for that has
// everything that was visible before, so that who was given an address finds it. When
// ctx ends, nobody waits any more and any snapshot will do.
func (v *View) Snapshot(ctx context.Context, shows ...Kind) *Snapshot {
	var polled []int
	for i, f := range v.feed.followers {
		if f.polls() && slices.Contains(shows, v.kinds[i].name) {
			polled = append(polled, i)
		}
	}
	for revision := v.IPs.Revision(); ; {
		s, ok := v.feed.at(v.Now(), revision, polled)
		if ok || ctx.Err() != nil {
			return s
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// DatedSnapshot is a snapshot that knows how fresh it is. What is said of the clusters
// is read first: what is known as of a moment is then in the snapshot.
func (v *View) DatedSnapshot(ctx context.Context, shows ...Kind) *Snapshot {
	known := v.ClustersByName()
	s := v.Snapshot(ctx, shows...)
	s.Known = known
	return s
}

// Clusters are the remote clusters of a snapshot that was asked for [Clusters], as they
// were then, sorted by name.
func (s *Snapshot) Clusters() []remotecluster.Status {
	return shown[remotecluster.Status](s, Clusters)
}

// Health is what modules, tasks and connections said of themselves, sorted by name; of
// a snapshot that was asked for [Health].
func (s *Snapshot) Health() []HealthItem { return shown[HealthItem](s, Health) }

func shown[D any](s *Snapshot, k Kind) []D {
	all, _ := s.polled[indexOf(k)].([]D)
	return all
}
