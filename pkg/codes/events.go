package codes

// What becomes of clusters.
const (
	ClusterAdded        Code = "MESH-1001"
	ClusterRemoved      Code = "MESH-1002"
	ClusterConnected    Code = "MESH-1003"
	ClusterDisconnected Code = "MESH-1004"
	ClusterReady        Code = "MESH-1005"
	ClusterSyncing      Code = "MESH-1006"
	ClusterDegraded     Code = "MESH-1007"
	ClusterFailed       Code = "MESH-1008"
	ClusterConnecting   Code = "MESH-1009"
	ClusterRemoving     Code = "MESH-1010"
	ClusterError        Code = "MESH-1011"
	ClusterIDChanged    Code = "MESH-1012"
	EtcdChanged         Code = "MESH-1013"
	EntriesRejected     Code = "MESH-1014"
	EntriesAccepted     Code = "MESH-1015"
	BackendsWithheld    Code = "MESH-1016"
	BackendsBack        Code = "MESH-1017"
)

func events() []Entry {
	const nothing = "Nothing to do."
	const troubleshoot = "'mesh-agent troubleshoot CLUSTER' finds out from this node which step of a connection fails. The agent keeps trying by itself."
	return []Entry{
		{
			Code: ClusterAdded, Severity: Info, Title: "a cluster was added",
			Cause: "A client file appeared in the mesh directory.", Remedy: nothing,
		},
		{
			Code: ClusterRemoved, Severity: Info, Title: "a cluster was removed",
			Cause:  "Its client file is gone, and everything that it had brought was withdrawn.",
			Remedy: "Nothing to do, when it was meant so. Else put the file back: the cluster is copied again.",
		},
		{
			Code: ClusterConnected, Severity: Info, Title: "a cluster was connected",
			Cause: "A session with an endpoint of its etcd began.", Remedy: nothing,
		},
		{
			Code: ClusterDisconnected, Severity: Warning, Title: "a cluster's connection was lost",
			Cause:  "The session with its etcd ended; the event says why. What was known of the cluster is kept and served.",
			Remedy: troubleshoot,
		},
		{
			Code: ClusterReady, Severity: Info, Title: "a cluster is ready",
			Cause: "Everything that it exports is visible here and followed.", Remedy: nothing,
		},
		{
			Code: ClusterSyncing, Severity: Info, Title: "a cluster is being copied",
			Cause:  "There is a connection, and the first lists run.",
			Remedy: "Wait: 'mesh-agent status --wait --for=synced' follows it.",
		},
		{
			Code: ClusterDegraded, Severity: Warning, Title: "a cluster is degraded",
			Cause:  "What was known of it is kept and served, and something is wrong: its message says what.",
			Remedy: "'mesh-agent describe cluster NAME' has the reason with a code of its own.",
		},
		{
			Code: ClusterFailed, Severity: Error, Title: "a cluster cannot be used",
			Cause:  "Its client file, its configuration or its cluster ID cannot be used as it is: its message says why.",
			Remedy: "Correct what the message names, here or in that cluster. The agent tries again by itself, and at once when the client file changes.",
		},
		{
			Code: ClusterConnecting, Severity: Warning, Title: "a cluster is not connected yet",
			Cause: "Nothing is known of it, and there is no session with its etcd.", Remedy: troubleshoot,
		},
		{
			Code: ClusterRemoving, Severity: Info, Title: "a cluster is being removed",
			Cause: "Its client file is gone, and its entries are being withdrawn.", Remedy: nothing,
		},
		{
			Code: ClusterError, Severity: Warning, Title: "a cluster's attempts fail for another reason than before",
			Cause: "An attempt to connect ended in another error than the one before.", Remedy: troubleshoot,
		},
		{
			Code: ClusterIDChanged, Severity: Warning, Title: "a cluster has another ID than before",
			Cause:  "Its configuration names another cluster ID. What it had brought under the old one was withdrawn and is copied again.",
			Remedy: "Nothing to do, when it was meant so. Else look at cluster.id in the values of that cluster's Cilium.",
		},
		{
			Code: EtcdChanged, Severity: Info, Title: "another etcd answers for a cluster",
			Cause:  "The etcd behind the endpoints has another cluster ID: a replica with an etcd of its own, a restored one, or somebody else's.",
			Remedy: "Nothing to do, when its clustermesh-apiserver has several replicas or was restarted. Else check where the endpoints lead.",
		},
		{
			Code: EntriesRejected, Severity: Warning, Title: "entries of a cluster are refused",
			Cause:  "Their values make no sense, belong to another cluster, or are outside what the cluster may write. What was known of them before stays.",
			Remedy: "Whatever writes them in that cluster has to correct them: 'mesh-agent describe cluster NAME' names some of them with what is wrong.",
		},
		{
			Code: EntriesAccepted, Severity: Info, Title: "no entries of a cluster are refused any more",
			Cause: "The last refused one was corrected or deleted.", Remedy: nothing,
		},
		{
			Code: BackendsWithheld, Severity: Warning, Title: "a cluster's service backends are withheld",
			Cause:  "There was no contact for longer than --clustermesh-cache-ttl. Its nodes, identities and addresses are kept.",
			Remedy: troubleshoot,
		},
		{
			Code: BackendsBack, Severity: Info, Title: "a cluster's service backends are back",
			Cause: "It is synced again.", Remedy: nothing,
		},
	}
}
