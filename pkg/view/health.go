package view

import (
	"cmp"
	"slices"

	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// HealthItem is the health of a module, of a background task or of a connection with a cluster.
type HealthItem struct {
	health.Status
	Cluster string // of a connection
}

// HealthItems returns the present items, sorted by name: one for each scope, and one for each cluster that is read.
func (v *View) HealthItems() []HealthItem {
	scopes, clusters := v.Scopes.List(), v.Clusters()
	items := make([]HealthItem, 0, len(scopes)+len(clusters)+1)
	for _, h := range scopes {
		items = append(items, HealthItem{Status: h})
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
	state := health.Degraded
	switch c.State {
	case remotecluster.Ready:
		state = health.OK
	case remotecluster.Removing:
		state = health.Stopped
	}
	return HealthItem{Cluster: c.Name, Status: health.Status{
		Name: name, State: state, Message: c.Message,
		LastSuccess: c.LastSuccess, LastFailure: c.LastFailure, ConsecutiveFailures: c.ConsecFailures,
	}}
}
