package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/summary"
	"github.com/mesh-agent/mesh-agent/pkg/view"
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
		ignored = append(ignored, s.Directory.Ignored()...)
	}
	clusters := clustermesh.WithAnnounced(s.View.Clusters(), unread)
	v := s.View.Snapshot(r.Context())
	answer := Status{
		Agent: s.Agent, Ready: ready, State: StateReady,
		Clusters: make([]Cluster, len(clusters)),
		Ignored:  ignored,
		TLS:      s.tls.Certificates(s.now()),
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
	answer.Impact = summary.ImpactOf(summary.Affecting(answer.SumUp()), statedb.ToSeq(s.View.Services.Global().All(v.Txn)))
	writeJSON(w, answer)
	return nil
}

// sharing is who shares services with whom.
func (s *Server) sharing(w http.ResponseWriter, r *http.Request) error {
	v := s.View.DatedSnapshot(r.Context())
	writeJSON(w, summary.SharingOf(r.FormValue("cluster"), statedb.ToSeq(s.View.Services.Global().All(v.Txn)), v.Unconfirmed(view.Families(view.Services)...)))
	return nil
}

// SumUp fills in the reason and what follows from the state of each cluster, which it returns.
func (st *Status) SumUp() []summary.Problem {
	problems := make([]summary.Problem, len(st.Clusters))
	for i := range st.Clusters {
		problems[i] = st.Clusters[i].problem()
	}
	st.Summary.ByTrouble = summary.Counts(problems)
	all := append(slices.Clone(problems), summary.Conflicts(st.Summary.Conflicts), summary.Ignored(len(st.Ignored)))
	if k := st.KVStore; k != nil && !k.Well() {
		all = append(all, summary.OwnKVStore(codes.Code(k.Code)))
	}
	if st.Description != nil && st.Description.Error != "" {
		all = append(all, summary.OwnDescription())
	}
	if st.TLS != nil {
		for _, n := range st.TLS.Notices {
			all = append(all, summary.Problem{Cluster: "this agent", Also: summary.Urgent(codes.Code(n.Code))})
		}
	}
	st.Reason = summary.Reason(all)
	return problems
}

// problem is what is wrong with the cluster.
func (c *Cluster) problem() summary.Problem {
	p := summary.Problem{Cluster: c.Name, Code: codes.Code(c.Code), Cause: codes.Code(c.Cause)}
	switch {
	case c.Trouble != nil:
		p.Kind = remotecluster.Trouble(c.Trouble.Kind)
	case !c.Kept():
		p.Also = summary.NotUsed
	case len(c.Refusals) > 0:
		p.Also = summary.Refused
	default:
		for _, n := range c.Notices {
			p.Also = cmp.Or(p.Also, summary.Urgent(codes.Code(n.Code)))
		}
	}
	return p
}
