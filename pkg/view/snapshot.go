package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Snapshot is one consistent state of everything at one position: what the changes up to there have
// made of it, neither more nor less. The tables of the [View] are read with Txn. A reader
// that starts from a snapshot and then reads all changes after its position misses nothing. It keeps
// objects alive that were deleted since, so it should not be held for long.
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

// Changes is a stream of some kinds, all of them when none is named, without filters:
// first the state, then every change, until ctx ends; the last error is that of ctx. With
// the token of an earlier event it goes on there. Event by event, Before and Object are
// the object before and after; while the body of the loop runs, nothing is buffered.
func (v *View) Changes(ctx context.Context, token string, kinds ...Kind) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		subs := make([]Subscription, len(kinds))
		for i, k := range kinds {
			subs[i].Kind = k
		}
		err := v.Stream(token, subs...).Run(ctx, yielding(yield), nil)
		if !errors.Is(err, errStopped) {
			yield(Event{}, err)
		}
	}
}

// yielding is the receiver of a loop.
type yielding func(Event, error) bool

var errStopped = errors.New("the loop has ended")

func (y yielding) Event(e Event) error {
	if e.Type != Page && !y(e, nil) {
		return errStopped
	}
	return nil
}

func (y yielding) Idle(ctx context.Context, _ Event, more <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
		return nil
	}
}

// Doubt says why what a cluster brought of a resource may not be what it has
// now; empty when it is known to be.
func (s *Snapshot) Doubt(cluster string, r wire.Resource) string {
	c, known := s.Known[cluster]
	if !known {
		return ""
	}
	f := c.Sources[r].Freshness
	switch {
	case f.State == remotecluster.FreshnessSynced:
		return ""
	case f.AsOf.IsZero():
		return fmt.Sprintf("the copy of %s's %s is not complete yet", cluster, r)
	}
	return fmt.Sprintf("not confirmed since %s", f.AsOf.UTC().Format(time.RFC3339))
}

// Freshness says of each cluster how fresh the worst of some key families is that it
// exports: in the least good state, and as of the earliest time. The snapshot is a dated
// one. Nil for no families.
func (s *Snapshot) Freshness(of ...wire.Resource) map[string]remotecluster.Freshness {
	if len(of) == 0 {
		return nil
	}
	all := make(map[string]remotecluster.Freshness, len(s.Known))
	for name, c := range s.Known {
		all[name], _ = c.FreshnessOf(of...)
	}
	return all
}

// FamilyOf is the key family that a claim came from.
func FamilyOf(e *ipcache.Entry) wire.Resource {
	if e.NodeName() != "" {
		return wire.Nodes
	}
	return wire.IPs
}

// Unconfirmed lists the clusters that may have something of one of these
// resources, or have given it up, without our knowing.
func (s *Snapshot) Unconfirmed(of ...wire.Resource) []string {
	names := []string{}
	for _, name := range slices.SortedFunc(maps.Keys(s.Known), natural.Compare) {
		if slices.ContainsFunc(of, func(r wire.Resource) bool { return s.Doubt(name, r) != "" }) {
			names = append(names, name)
		}
	}
	return names
}
