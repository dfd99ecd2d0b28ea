package remotecluster

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FreshnessState classifies the age of a resource's copy.
type FreshnessState string

// The states of freshness.
const (
	FreshnessUnknown FreshnessState = "unknown" // the resource was never read
	FreshnessSyncing FreshnessState = "syncing" // the first list is running
	FreshnessSynced  FreshnessState = "synced"  // recently confirmed to be equal to the remote, as of AsOf
	FreshnessStale   FreshnessState = "stale"   // kept from earlier; the remote may have changed since AsOf
)

// doubt returns the rank of the state; 0 is the best.
func (s FreshnessState) doubt() int {
	return slices.Index([]FreshnessState{FreshnessSynced, FreshnessStale, FreshnessSyncing, FreshnessUnknown}, s)
}

// Freshness is the last time at which a resource's copy is known to equal the remote
// (kvstore.md §2.3). AsOf is zero when it was never confirmed.
type Freshness struct {
	State FreshnessState
	AsOf  time.Time
}

// String returns the state and its time, such as "synced as of 2026-11-27T20:05:01Z".
func (f Freshness) String() string {
	if f.AsOf.IsZero() {
		return string(f.State)
	}
	return string(f.State) + " as of " + f.AsOf.UTC().Format(time.RFC3339)
}

// FreshnessOf returns the combined freshness of some resources: the worst state, and
// the earliest time. Resources that the cluster does not export do not count. exported is
// false if none of them is exported: then the result is the freshness of the first one.
func (s *Status) FreshnessOf(of ...wire.Resource) (f Freshness, exported bool) {
	for _, r := range of {
		src, known := s.Families[r]
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

// freshness classifies the copy of a family. Without a stream the copy cannot be confirmed.
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
