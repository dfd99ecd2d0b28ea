package httpapi

import (
	"net/http"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/summary"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	// Readiness is read first: resources that are synced at this point are then in the view.
	ready, _ := s.View.Ready()
	unread := s.View.Reader.Announced() // before the clusters, so that no cluster is missed that is connected in between
	ignored := converted(s.View.Reader.Ignored(), func(i clustermesh.Ignored) api.Ignored { return api.Ignored{File: i.File, Reason: i.Reason} })
	clusters := clustermesh.WithAnnounced(s.View.Clusters(), unread)
	v := s.View.Snapshot(r.Context())
	answer := api.Status{
		Agent: s.Agent, Ready: ready, State: api.StateReady,
		Clusters: make([]api.Cluster, len(clusters)),
		Ignored:  ignored,
		TLS:      s.tls.Certificates(s.now()),
		Summary: api.Summary{
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
			answer.State = api.StateDegraded
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
			code, why := s.Stopped()
			stopped(answer.KVStore, code, why)
		}
		if !answer.KVStore.Well() {
			answer.State = api.StateDegraded
		}
	}
	if s.Serving != nil {
		answer.Serving = s.Serving()
	}
	if answer.Description = s.description(); answer.Description != nil && answer.Description.Error != "" {
		answer.State = api.StateDegraded
	}
	if !ready {
		answer.State = api.StateStarting
	}
	if s.Leads != nil {
		answer.Agent.Leads = new(s.Leads())
	}
	answer.Agent.Started = answer.Agent.Started.UTC()
	answer.Impact = summary.ImpactOf(summary.Affecting(summary.SumUp(&answer)), statedb.ToSeq(s.View.Services.Global().All(v.Txn)))
	writeJSON(w, answer)
	return nil
}

// sharing answers with the clusters that share services with each other.
func (s *Server) sharing(w http.ResponseWriter, r *http.Request) error {
	v := s.View.DatedSnapshot(r.Context())
	writeJSON(w, summary.SharingOf(r.FormValue("cluster"), statedb.ToSeq(s.View.Services.Global().All(v.Txn)), v.Unconfirmed(view.Families(view.Services)...)))
	return nil
}
