package httpapi

import (
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// TestTheContractHasOurNames: package api imports neither the clusters nor the view, so it repeats the names of their
// states and events.
func TestTheContractHasOurNames(t *testing.T) {
	t.Parallel()
	for contract, ours := range map[string]string{
		string(api.TroubleFailed): string(remotecluster.Failed), string(api.TroubleConnecting): string(remotecluster.Connecting),
		string(api.TroubleDegraded): string(remotecluster.Degraded), string(api.TroubleSyncing): string(remotecluster.Syncing),
		string(api.TroubleRemoving): string(remotecluster.Removing), string(api.TroubleStale): string(remotecluster.FreshnessStale),
		"ready":         string(remotecluster.Ready),
		api.WatchUpsert: string(view.Upsert), api.WatchDelete: string(view.Delete), api.WatchReset: string(view.Reset), api.WatchSynced: string(view.Synced),
	} {
		if contract != ours {
			t.Errorf("package api says %q, the agent %q", contract, ours)
		}
	}
}

// TestEveryKindIsListed: each kind of the view has a list.
func TestEveryKindIsListed(t *testing.T) {
	t.Parallel()
	kinds := converted(allResources(), described.kind)
	if !slices.Equal(kinds, view.Kinds()) {
		t.Errorf("the lists are %v, the kinds %v", kinds, view.Kinds())
	}
}
