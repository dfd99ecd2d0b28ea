package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// The states of the agent.
const (
	StateStarting = "starting" // has not been ready yet
	StateReady    = "ready"    // every cluster is ready, and its data fresh
	StateDegraded = "degraded" // serves, but something is wrong with a cluster, or with the local kvstore
)

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	// What the mesh says comes first: what it calls synced is then in the view.
	ready, _ := s.View.Ready()
	var unread []remotecluster.Status
	ignored := []clustermesh.Ignored{}
	if s.Directory != nil {
		unread = s.Directory.Announced() // first: a cluster that is taken up meanwhile is not missed
	}
	clusters := announced(s.View.Clusters(), unread)
	if s.Directory != nil {
		ignored = append(ignored, s.Directory.Ignored()...)
	}
	v := s.View.Snapshot(r.Context())
	answer := Status{
		Agent: s.Agent, Ready: ready, State: StateReady,
		Clusters: make([]Cluster, len(clusters)),
		Ignored:  ignored,
		Summary: Summary{
			Clusters:   len(clusters),
			Nodes:      s.View.Nodes.Table().NumObjects(v.Txn),
			Services:   s.View.Services.Global().NumObjects(v.Txn),
			Identities: s.View.Identities.Table().NumObjects(v.Txn),
			IPs:        v.IPs.Len(),
			Conflicts:  findings.Count(s.View.Findings.Conflicts().All(v.Txn)),
		},
	}
	for g := range s.View.Services.Global().All(v.Txn) {
		if g.Shared() {
			answer.Summary.GlobalServices++
		}
	}
	now := s.now()
	for i, c := range clusters {
		answer.Clusters[i] = s.cluster(c, now)
		if c.Ready {
			answer.Summary.ClustersReady++
		}
		if !answer.Clusters[i].Well() {
			answer.State = StateDegraded
		}
	}
	if own, has := s.View.OwnCluster(); has {
		answer.OwnCluster, answer.KVStore = s.own(own, now)
	} else if s.Writer != nil {
		answer.KVStore = writtenKVStore(s.Writer.Status())
	}
	if answer.KVStore != nil {
		if s.Writer != nil {
			answer.KVStore.Lease = leases(s.Writer.Status())
		}
		if s.Written != nil {
			answer.KVStore.Written = toWritten(s.Written())
		}
		if s.Stopped != nil {
			answer.KVStore.stopped(s.Stopped())
		}
		if !answer.KVStore.Well() {
			answer.State = StateDegraded
		}
	}
	if s.Serving != nil {
		answer.Serving = s.Serving()
	}
	if answer.Description = s.description(); answer.Description != nil && answer.Description.Error != "" {
		answer.State = StateDegraded
	}
	if !ready {
		answer.State = StateStarting
	}
	if s.Leads != nil {
		answer.Agent.Leads = new(s.Leads())
	}
	answer.Agent.Started = answer.Agent.Started.UTC()
	writeJSON(w, answer)
	return nil
}

// announced puts clusters that the directory has now in the place of what is known
// of them: a change of the directory shows immediately.
func announced(known, now []remotecluster.Status) []remotecluster.Status {
	if len(now) == 0 {
		return known
	}
	all := slices.DeleteFunc(slices.Clone(known), func(c remotecluster.Status) bool {
		return slices.ContainsFunc(now, func(n remotecluster.Status) bool { return n.Name == c.Name })
	})
	all = append(all, now...)
	slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}
