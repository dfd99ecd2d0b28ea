package httpapi

import (
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
)

// toPolicy returns nil without a policy.
func toPolicy(o *disconnect.Forecast) *api.ClusterPolicy {
	if o == nil {
		return nil
	}
	p := &api.ClusterPolicy{
		State: o.State.String(), Since: o.Since.UTC(), Doubtful: o.Doubtful, Reason: o.Why,
		NextAt: timeOrNull(o.NextAt), Held: timeOrNull(o.Held), InDoubt: o.Failing, Judged: o.Judged,
		Evidence: api.PolicyEvidence{
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

// steady returns a policy without the values that change all the time.
func steady(p *api.ClusterPolicy) *api.ClusterPolicy {
	if p == nil {
		return nil
	}
	s := *p
	s.Evidence.Confirmed, s.Evidence.Heartbeat = nil, nil
	return &s
}
