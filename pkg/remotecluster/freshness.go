package remotecluster

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FreshnessState classifies what is known about the age of a resource's copy.
type FreshnessState string

// The states of freshness.
const (
	FreshnessUnknown FreshnessState = "unknown" // nothing was ever read
	FreshnessSyncing FreshnessState = "syncing" // the first list is under way
	FreshnessSynced  FreshnessState = "synced"  // proved equal to the remote as of AsOf, recently
	FreshnessStale   FreshnessState = "stale"   // kept from before; the remote may have moved on since AsOf
)

// doubt orders the states, the best first.
func (s FreshnessState) doubt() int {
	return slices.Index([]FreshnessState{FreshnessSynced, FreshnessStale, FreshnessSyncing, FreshnessUnknown}, s)
}

// Freshness tells until when a resource's copy is known to equal the remote
// (kvstore.md §2.3). AsOf is zero when it never was.
type Freshness struct {
	State FreshnessState
	AsOf  time.Time
}

// String is the state, and as of when: "synced as of 2026-11-27T20:05:01Z".
func (f Freshness) String() string {
	if f.AsOf.IsZero() {
		return string(f.State)
	}
	return string(f.State) + " as of " + f.AsOf.UTC().Format(time.RFC3339)
}

// FreshnessOf is how fresh some resources are together: in the least good state, and
// as of the earliest time. Those that the cluster does not export do not count, unless
// none is exported, which exported reports: then it is the freshness of the first one.
func (s *Status) FreshnessOf(of ...wire.Resource) (f Freshness, exported bool) {
	for _, r := range of {
		src, known := s.Sources[r]
		one, counts := src.Freshness, src.Exported || src.Count > 0
		switch {
		case !known || !counts && f.State != "":
			continue
		case f.State == "" || !exported:
			f = one // the first, or the first that is exported
		default:
			if one.State.doubt() > f.State.doubt() {
				f.State = one.State
			}
			if one.AsOf.Before(f.AsOf) {
				f.AsOf = one.AsOf
			}
		}
		exported = exported || counts
	}
	return f, exported
}

// freshness classifies a copy by its source. Without a stream nothing confirms it.
func freshness(st store.Status, connected bool, stale time.Duration, now time.Time) FreshnessState {
	switch {
	case !st.Synced && (st.Listing || connected):
		return FreshnessSyncing
	case st.AsOf.IsZero():
		return FreshnessUnknown
	case !connected || !st.Following || now.Sub(st.AsOf) > stale:
		return FreshnessStale
	}
	return FreshnessSynced
}
