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
		return checkPath + "The agent keeps trying; meanwhile what was known is kept and served."
	case TroubleDegraded:
		return "Look at the etcd of that cluster and at what writes there: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy. What is known is served meanwhile."
	case TroubleStale:
		return "What is known is served, but the remote may have moved on. If it stays so, look at the load and the latency of that etcd."
	case TroubleSyncing:
		return "Wait: 'mesh-agent status --wait --for=synced' follows it. If it does not move on, look at what publishes that cluster's state (clustermesh-apiserver, mesh-agent operate) or copies it (mesh-agent mirror)."
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
		return "The file of --claim-policy-file refuses what has the reason policy: where the cluster may have it, grant it there (docs/claims.md)."
	case wire.ReasonBudget:
		return fmt.Sprintf("What has the reason budget is beyond --remote-budget: have less of it there, or give more than now, as in --remote-budget %s.%s.keys=N "+
			"(the message of the cluster names the option; docs/budgets.md).", cluster, resource)
	case wire.ReasonTooLarge:
		return "What has the reason too-large is beyond a bound that no flag raises (docs/budgets.md): whatever writes it in that cluster has to make it smaller."
	default:
		return "What was known of them before stays. Whatever writes them in that cluster has to correct them; the agent's log names more of them."
	}
}
