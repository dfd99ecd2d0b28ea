package remotecluster

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Trouble is a kind of thing that is wrong with a cluster; empty for none.
type Trouble string

// The kinds of trouble. Four of them are states.
const (
	TroubleFailed     = Trouble(Failed)
	TroubleConnecting = Trouble(Connecting)
	TroubleLost       = Trouble("lost") // the connection
	TroubleDegraded   = Trouble(Degraded)
	TroubleStale      = Trouble(FreshnessStale)
	TroubleSyncing    = Trouble(Syncing)
	TroubleRemoving   = Trouble(Removing)
)

// TroubleOf classifies a cluster.
func TroubleOf(state State, ready, connected, fresh bool) Trouble {
	switch {
	case state == Failed, state == Connecting, state == Syncing, state == Removing:
		return Trouble(state)
	case !connected:
		return TroubleLost
	case state != Ready || !ready:
		return TroubleDegraded
	case !fresh:
		return TroubleStale
	}
	return ""
}

// Remedy is what to do about the trouble of any cluster, in a person's words.
func (t Trouble) Remedy() string {
	const checkPath = "'mesh-agent troubleshoot CLUSTER' finds out from this node which step fails: DNS, firewall, TLS, the certificates " +
		"of both sides, rights, the etcd itself. "
	switch t {
	case TroubleFailed:
		return "Correct what the message names, here or in that cluster. The agent tries again by itself, and at once when the client file changes."
	case TroubleConnecting:
		return checkPath + "The agent keeps trying."
	case TroubleLost:
		return checkPath + "The agent keeps trying; the cluster's data is kept and served."
	case TroubleDegraded:
		return "Look at the etcd of that cluster and at what writes there: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy. The cluster's data is served meanwhile."
	case TroubleStale:
		return "The data is served, but the remote may have changed since. If this continues, look at the load and the latency of that etcd."
	case TroubleSyncing:
		return "Wait: 'mesh-agent status --wait --for=synced' follows it. If it hangs, look at what publishes that cluster's state (clustermesh-apiserver, mesh-agent operate) or copies it (mesh-agent mirror)."
	case TroubleRemoving:
		return "Nothing to do: it disappears when all its entries are withdrawn."
	}
	return ""
}

// RefusalRemedy is what to do about entries that are refused for a reason: our own file
// or flag may be the cause, or else what writes them.
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
