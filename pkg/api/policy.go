package api

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
)

// The states of a [ClusterPolicy].
const (
	PolicyKeep     = "keep"     // used as those of any cluster
	PolicyDemote   = "demote"   // used only where no other cluster has a usable one
	PolicyWithdraw = "withdraw" // removed where another cluster has a usable one
)

// ClusterPolicy is what the disconnect policy makes of a cluster: how its service
// backends are used, and what happens next.
type ClusterPolicy struct {
	State    string         `json:"state" enum:"keep,demote,withdraw" doc:"keep: its service backends are used as those of any cluster. demote: only where no other cluster has a usable one. withdraw: they are removed where another cluster has a usable one."`
	Since    time.Time      `json:"since" doc:"When the state began; for keep, unless it was restored, when the agent came to know the cluster."`
	Code     string         `json:"code" doc:"That of the state; empty for keep."`
	Doubtful bool           `json:"doubtful" doc:"Whether the evidence speaks against it at this moment."`
	Reason   string         `json:"reason" doc:"What speaks against the cluster, or for its return; empty when there is nothing to say."`
	Next     string         `json:"next" doc:"The state that follows if the evidence stays as it is; empty when none does."`
	NextAt   *time.Time     `json:"nextAt" doc:"When that is; null when nothing follows."`
	Held     *time.Time     `json:"held" doc:"Since when more than half of the clusters are in doubt, so that none is demoted or withdrawn; null when it is not so."`
	InDoubt  int            `json:"inDoubt" doc:"How many clusters are in doubt."`
	Judged   int            `json:"judged" doc:"Of how many: those that were synced at some time."`
	Evidence PolicyEvidence `json:"evidence"`
}

// PolicyEvidence is what the policy goes by.
type PolicyEvidence struct {
	Confirmed      *time.Time `json:"confirmed" doc:"Until when its services are known to equal the remote's; null when they never were."`
	Heartbeat      *time.Time `json:"heartbeat" doc:"When its writer was last heard of in this session; null when never."`
	ConnectedSince *time.Time `json:"connectedSince" doc:"null while there is no session."`
	Error          string     `json:"error" doc:"Why it does not answer, as far as somebody knows."`
}

// toPolicy is nil without a policy.
func toPolicy(o *disconnect.Outlook) *ClusterPolicy {
	if o == nil {
		return nil
	}
	p := &ClusterPolicy{
		State: o.State.String(), Since: o.Since.UTC(), Doubtful: o.Doubtful, Reason: o.Why,
		NextAt: timeOrNull(o.NextAt), Held: timeOrNull(o.Held), InDoubt: o.Failing, Judged: o.Judged,
		Evidence: PolicyEvidence{
			Confirmed: timeOrNull(o.Evidence.AsOf), Heartbeat: timeOrNull(o.Evidence.Heartbeat),
			ConnectedSince: timeOrNull(o.Evidence.Connected), Error: o.Evidence.Error,
		},
	}
	if p.NextAt != nil {
		p.Next = o.Next.String()
	}
	switch o.State {
	case disconnect.Demote:
		p.Code = string(codes.ClusterDemoted)
	case disconnect.Withdraw:
		p.Code = string(codes.ClusterWithdrawn)
	}
	return p
}

// steady leaves out what moves all the time.
func (p *ClusterPolicy) steady() *ClusterPolicy {
	if p == nil {
		return nil
	}
	s := *p
	s.Evidence.Confirmed, s.Evidence.Heartbeat = nil, nil
	return &s
}
