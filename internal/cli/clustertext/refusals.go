package clustertext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// RefusedText names one entry of each resource.
func RefusedText(refusals []api.Refusal) string {
	parts := make([]string, len(refusals))
	for i, r := range refusals {
		parts[i] = fmt.Sprintf("%s: %d", r.Resource, r.Count)
		switch {
		case r.Key != "":
			parts[i] += fmt.Sprintf(", such as %s: %s", r.Key, r.Message)
		case len(r.Reasons) > 0:
			parts[i] += fmt.Sprintf(" for %s", strings.Join(slices.Sorted(maps.Keys(r.Reasons)), ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// RefusalRemedies say what to do about refused entries, by reason: our own file or
// flag may be the cause, or else what writes them.
func RefusalRemedies(clusters []api.Cluster) []string {
	var policy, budget, large, other string
	for _, c := range clusters {
		for _, r := range c.Refusals {
			for reason := range r.Reasons {
				switch wire.Reason(reason) {
				case wire.ReasonPolicy:
					policy = "The file of --claim-policy-file refuses what has the reason policy: where the cluster may have it, grant it there (docs/claims.md)."
				case wire.ReasonBudget:
					budget = cmp.Or(budget, fmt.Sprintf("What has the reason budget is beyond --remote-budget: have less of it there, or give more than now, as in --remote-budget %s.%s.keys=N "+
						"(the message of the cluster names the option; docs/budgets.md).", c.Name, r.Resource))
				case wire.ReasonTooLarge:
					large = "What has the reason too-large is beyond a bound that no flag raises (docs/budgets.md): whatever writes it in that cluster has to make it smaller."
				default:
					other = "What was known of them before stays. Whatever writes them in that cluster has to correct them; the agent's log names more of them."
				}
			}
			if len(r.Reasons) == 0 { // an agent that does not tell
				other = cmp.Or(other, "The agent's log says why they are refused.")
			}
		}
	}
	return slices.DeleteFunc([]string{policy, budget, large, other}, func(s string) bool { return s == "" })
}
