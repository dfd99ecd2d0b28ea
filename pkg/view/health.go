package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/health"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// HealthItem is what a module, a background task or a connection with a cluster says of
// itself.
type HealthItem struct {
	Name                string // unique
	Cluster             string // of a connection
	State               string // unknown, ok, degraded or stopped
	Message             string
	LastSuccess         time.Time // zero: never
	LastFailure         time.Time // zero: never
	ConsecutiveFailures int       // since the last success
}

// HealthKey names an item.
func HealthKey(h HealthItem) string { return h.Name }

// settledHealth leaves out what moves all the time.
func settledHealth(h HealthItem) any {
	h.LastSuccess = time.Time{}
	return h
}

// HealthItems returns what there is at this moment, sorted by name: one item for each
// scope, and one for each cluster that is read.
func (v *View) HealthItems() []HealthItem {
	var scopes []health.Status
	if v.Scopes != nil {
		scopes = v.Scopes.List()
	}
	clusters := v.Clusters()
	items := make([]HealthItem, 0, len(scopes)+len(clusters)+1)
	for _, h := range scopes {
		items = append(items, HealthItem{
			Name: h.Name, State: string(h.State), Message: h.Message,
			LastSuccess: h.LastSuccess, LastFailure: h.LastFailure, ConsecutiveFailures: h.ConsecutiveFailures,
		})
	}
	for _, c := range clusters {
		items = append(items, connectionHealth("remote-cluster."+c.Name, c))
	}
	if own, has := v.OwnCluster(); has {
		items = append(items, connectionHealth("local-kvstore", own))
	}
	slices.SortStableFunc(items, func(a, b HealthItem) int { return cmp.Compare(a.Name, b.Name) })
	return items
}

func connectionHealth(name string, c remotecluster.Status) HealthItem {
	return HealthItem{
		Name: name, Cluster: c.Name, State: string(clusterHealth(c.State)), Message: c.Message,
		LastSuccess: c.LastSuccess, LastFailure: c.LastFailure, ConsecutiveFailures: c.ConsecFailures,
	}
}

func clusterHealth(state remotecluster.State) health.State {
	switch state {
	case remotecluster.Ready:
		return health.OK
	case remotecluster.Removing:
		return health.Stopped
	default:
		return health.Degraded
	}
}
