package summary

import (
	"cmp"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// SumUp fills in the reason and the counts by trouble, and returns the problem of each cluster.
func SumUp(st *api.Status) []Problem {
	problems := make([]Problem, len(st.Clusters))
	for i := range st.Clusters {
		problems[i] = problemOf(&st.Clusters[i])
	}
	st.Summary.ByTrouble = Counts(problems)
	all := append(slices.Clone(problems), Conflicts(st.Summary.Conflicts), Ignored(len(st.Ignored)))
	if k := st.KVStore; k != nil && !k.Well() {
		all = append(all, OwnKVStore(codes.Code(k.Code)))
	}
	if st.Description != nil && st.Description.Error != "" {
		all = append(all, OwnDescription())
	}
	if st.TLS != nil {
		for _, n := range st.TLS.Notices {
			all = append(all, Problem{Cluster: "this agent", Also: Urgent(codes.Code(n.Code))})
		}
	}
	st.Reason = Reason(all)
	return problems
}

// problemOf returns the problem of the cluster.
func problemOf(c *api.Cluster) Problem {
	p := Problem{Cluster: c.Name, Code: codes.Code(c.Code), Cause: codes.Code(c.Cause)}
	switch {
	case c.Trouble != nil:
		p.Kind = api.TroubleKind(c.Trouble.Kind)
	case !c.Kept():
		p.Also = NotUsed
	case len(c.Refusals) > 0:
		p.Also = Refused
	default:
		for _, n := range c.Notices {
			p.Also = cmp.Or(p.Also, Urgent(codes.Code(n.Code)))
		}
	}
	return p
}
