package api

// TroubleKind is a kind of problem of a cluster; empty for none.
type TroubleKind string

// The kinds of trouble. Five of them are states of a cluster, and one is its freshness.
const (
	TroubleFailed     TroubleKind = "failed"
	TroubleConnecting TroubleKind = "connecting"
	TroubleLost       TroubleKind = "lost" // the connection
	TroubleDegraded   TroubleKind = "degraded"
	TroubleStale      TroubleKind = "stale"
	TroubleSyncing    TroubleKind = "syncing"
	TroubleRemoving   TroubleKind = "removing"
)

// TroubleOf classifies a cluster.
func TroubleOf(state string, ready, connected, fresh bool) TroubleKind {
	switch kind := TroubleKind(state); {
	case kind == TroubleFailed, kind == TroubleConnecting, kind == TroubleSyncing, kind == TroubleRemoving:
		return kind
	case !connected:
		return TroubleLost
	case state != "ready" || !ready:
		return TroubleDegraded
	case !fresh:
		return TroubleStale
	}
	return ""
}

// Remedy describes for users how to solve the trouble of any cluster.
func (t TroubleKind) Remedy() string {
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
