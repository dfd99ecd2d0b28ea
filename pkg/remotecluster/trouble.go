package remotecluster

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// RefusalRemedy returns the advice for entries that are refused for a reason. The cause may
// be our own file or flag, or the program that writes the entries.
func RefusalRemedy(cluster string, resource wire.Resource, reason wire.Reason) string {
	switch reason {
	case wire.ReasonPolicy:
		return "The file of --claim-policy-file refuses entries with the reason policy: if the cluster may have them, grant them there (docs/claims.md)."
	case wire.ReasonBudget:
		return fmt.Sprintf("Entries with the reason budget exceed --remote-budget: reduce them there, or raise the budget, as in --remote-budget %s.%s.keys=N "+
			"(the message of the cluster names the option; docs/budgets.md).", cluster, resource)
	case wire.ReasonTooLarge:
		return "Entries with the reason too-large exceed a limit that no flag raises (docs/budgets.md): make them smaller in that cluster."
	case wire.ReasonName:
		return "Entries with the reason name have a name or another text that no object of Kubernetes can have. Correct, or stop, the program that writes them in that cluster (docs/spec/design.md §1.9)."
	default:
		return "Their previous values stay. Correct the program that writes them in that cluster; the agent's log names more of them."
	}
}
