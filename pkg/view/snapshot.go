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

// Snapshot is one consistent state of all data at one position: exactly the result of the changes up to that position.
// The tables of the [View] are read with Txn. A reader that starts from a snapshot and then reads all changes after its
// position misses nothing. A snapshot keeps objects alive that were deleted since, so it should not be held for long.
type Snapshot struct {
	Position uint64
	Txn      statedb.ReadTxn
	IPs      *ipcache.Snapshot
	// Known is the status of the clusters by name, the own one included, read right before the snapshot; nil unless it
	// is a [View.DatedSnapshot].
	Known map[string]remotecluster.Status

	polled map[Kind]any // objects that are in no table, of the requested kinds
}

// Snapshot returns the present state. Of the kinds that are in no table ([Clusters] and [Health]) it has only those in
// shows. The readers of the cache of addresses share a snapshot that may be some milliseconds old. Snapshot waits for
// one that has everything that was visible before the call, so that a client that was given an address finds it. When
// ctx ends, it does not wait any longer, and returns a snapshot that may be older.
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

// DatedSnapshot is a snapshot with the freshness of its data. The status of the clusters is read first, so the snapshot
// is never older than the status shows.
func (v *View) DatedSnapshot(ctx context.Context, shows ...Kind) *Snapshot {
	known := v.ClustersByName()
	s := v.Snapshot(ctx, shows...)
	s.Known = known
	return s
}

// Clusters returns the remote clusters of a snapshot that was made with [Clusters], as they were then, sorted by name.
func (s *Snapshot) Clusters() []remotecluster.Status {
	return shown[remotecluster.Status](s, Clusters)
}

// Health returns the health of modules, tasks and connections, sorted by name, of a snapshot that was made with
// [Health].
func (s *Snapshot) Health() []HealthItem { return shown[HealthItem](s, Health) }

func shown[D any](s *Snapshot, k Kind) []D {
	all, _ := s.polled[k].([]D)
	return all
}

// Changes is a stream of some kinds, or of all when none is named, without filters: first the state, then every change,
// until ctx ends; the last error is that of ctx. With the token of an earlier event, it continues there. In each event,
// Before and Object are the object before and after the change. While the body of the loop runs, no events are
// buffered.
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

// yielding is the receiver for a range loop.
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

// Doubt returns why a cluster's objects of a resource may differ from what the cluster has now; empty when they are
// known to be equal.
func (s *Snapshot) Doubt(cluster string, r wire.Resource) string {
	c, known := s.Known[cluster]
	if !known {
		return ""
	}
	f := c.Families[r].Freshness
	switch {
	case f.State == remotecluster.FreshnessSynced:
		return ""
	case f.AsOf.IsZero():
		return fmt.Sprintf("the copy of %s's %s is not complete yet", cluster, r)
	}
	return fmt.Sprintf("not confirmed since %s", f.AsOf.UTC().Format(time.RFC3339))
}

// Freshness returns, for each cluster, the freshness of its least fresh key family among those given: the worst state,
// and the earliest time. Families that the cluster does not export are left out. The snapshot must be a dated one. It
// returns nil for no families.
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

// FamilyOf returns the key family that a claim came from.
func FamilyOf(e *ipcache.Entry) wire.Resource {
	if e.NodeName() != "" {
		return wire.Nodes
	}
	return wire.IPs
}

// Unconfirmed lists the clusters that may have added or removed an object of one of these resources without this being
// visible yet.
func (s *Snapshot) Unconfirmed(of ...wire.Resource) []string {
	names := []string{}
	for _, name := range slices.SortedFunc(maps.Keys(s.Known), natural.Compare) {
		if slices.ContainsFunc(of, func(r wire.Resource) bool { return s.Doubt(name, r) != "" }) {
			names = append(names, name)
		}
	}
	return names
}
