package codes

// Claims of remote clusters that break a rule (docs/claims.md).
const (
	OwnNetworkClaimed       Code = "MESH-3110"
	SpecialUseClaimed       Code = "MESH-3111"
	ForeignNetworkClaimed   Code = "MESH-3112"
	ReservedIdentityClaimed Code = "MESH-3113"
	OwnNetworkBackends      Code = "MESH-3114"
	SpecialUseBackends      Code = "MESH-3115"
)

// The same, of one claim.
const (
	ClaimInOwnNetwork     Code = "MESH-3205"
	ClaimSpecialUse       Code = "MESH-3206"
	ClaimInForeignNetwork Code = "MESH-3207"
	ClaimReservedIdentity Code = "MESH-3208"
	ClaimRefused          Code = "MESH-3209"
)

// Why a cluster is not read: what the claim policy file and the memory of cluster
// IDs say of it.
const (
	ClusterNotAdmitted  Code = "MESH-1260"
	ClusterIDNotPinned  Code = "MESH-1261"
	ClusterIDRemembered Code = "MESH-1262"
	ClusterIDUnsteady   Code = "MESH-1263"
)

func admissionStates() []Entry {
	return []Entry{
		{
			Code: ClusterNotAdmitted, Severity: Error, Title: "the claim policy file does not admit the cluster",
			Cause:  "The file has no entry for the cluster, and its default is deny. Nothing is read of it.",
			Remedy: "Add an entry to the file (docs/claims.md), or remove the client file of the cluster. A change of the file is seen within seconds.",
		},
		{
			Code: ClusterIDNotPinned, Severity: Error, Title: "the cluster comes with another ID than the claim policy file says",
			Cause:  "The file pins the cluster to another ID, or its ID to another cluster. Nothing is read of it.",
			Remedy: "Correct cluster.id in the values of that cluster's Cilium, or the file (docs/claims.md).",
		},
		{
			Code: ClusterIDRemembered, Severity: Error, Title: "the cluster ID is that of a cluster that is away",
			Cause:  "Before a restart of the agent another cluster had this ID. It has a client file still, and is not connected. Nothing is read of the one that comes with its ID.",
			Remedy: "Give each cluster an ID of its own. When the other one is gone for good, remove its client file; when the ID was given to this one on purpose, pin it in the claim policy file (docs/claims.md).",
		},
		{
			Code: ClusterIDUnsteady, Severity: Error, Title: "the cluster changes its ID all the time",
			Cause:  "Its configuration named more than five other IDs within ten minutes. Each change withdraws and copies everything, so it is refused until one ID has stood for ten minutes; what was known is kept.",
			Remedy: "Look at what writes the configuration of that cluster: two writers with different IDs, or somebody who means harm. An ID that is pinned in the claim policy file (docs/claims.md) does not change.",
		},
	}
}

const (
	lookAtWriter = "Look at what writes the addresses of that cluster: who may write in its etcd, and which of its nodes is configured wrongly. 'mesh-agent lookup ADDRESS' shows the claims."
	enforceIt    = " --claim-policy=enforce keeps such claims from counting; a policy file (docs/claims.md) says what the cluster may claim."
)

// lookAtBackends is what to do about backends that no remote can have.
const lookAtBackends = "Look at what writes the services of that cluster: who may write in its etcd. 'mesh-agent describe service NAMESPACE/NAME' shows which backends are used. --claim-policy=enforce keeps such backends from being used; 'networks' in a policy file (docs/claims.md) has entries with backends outside of them refused."

func claimConflicts() []Entry {
	return []Entry{
		{
			Code: OwnNetworkClaimed, Severity: Error, Title: "a remote cluster claims addresses of the own networks",
			Cause:  "Its claims are inside a pod network of the own nodes, or a network that --pod-cidr or --service-cidr names. They never count. Either its networks overlap with the own ones, or somebody there tries to get the own traffic.",
			Remedy: lookAtWriter + " Where both clusters were given one network, give each its own.",
		},
		{
			Code: SpecialUseClaimed, Severity: Error, Title: "a remote cluster claims addresses for special use",
			Cause:  "Its claims are a default route, or loopback, link-local, multicast or other addresses that no pod and no node can have.",
			Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: ForeignNetworkClaimed, Severity: Error, Title: "a remote cluster claims addresses in the pod network of another one",
			Cause:  "Its claims are inside a pod network that the nodes of another cluster announce, and none of its own. The longest prefix counts, so the traffic for these addresses goes to it.",
			Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: ReservedIdentityClaimed, Severity: Error, Title: "a remote cluster publishes addresses with privileged identities",
			Cause:  "Endpoints of a remote have a reserved identity such as kube-apiserver or world, or remote-node where no node of the cluster has the address. Policies that name these identities hold for whoever has the address.",
			Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: OwnNetworkBackends, Severity: Error, Title: "service backends of a remote cluster are inside the own networks",
			Cause:  "The cluster shares services with backends inside a pod network of the own nodes, or a network that --pod-cidr or --service-cidr names. Clients of these services reach pods of the own cluster.",
			Remedy: lookAtBackends,
		},
		{
			Code: SpecialUseBackends, Severity: Error, Title: "service backends of a remote cluster are on addresses for special use",
			Cause:  "The cluster shares services with loopback, link-local (such as 169.254.169.254, where clouds serve metadata), multicast or other backends that no pod and no node can have.",
			Remedy: lookAtBackends,
		},
	}
}

func claimReasons() []Entry {
	return []Entry{
		{
			Code: ClaimInOwnNetwork, Severity: Error, Title: "the claim is inside a network of the own cluster",
			Cause: "No remote can have such an address: the claim does not count.", Remedy: lookAtWriter,
		},
		{
			Code: ClaimSpecialUse, Severity: Error, Title: "the claim is on addresses for special use",
			Cause: "No pod and no node can have such an address.", Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: ClaimInForeignNetwork, Severity: Error, Title: "the claim is inside a pod network of another cluster",
			Cause: "The nodes of another cluster announce the network, and none of the claim's own cluster does.", Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: ClaimReservedIdentity, Severity: Error, Title: "the claim has a privileged identity",
			Cause: "The identity is reserved, and a remote cannot vouch for it.", Remedy: lookAtWriter + enforceIt,
		},
		{
			Code: ClaimRefused, Severity: Warning, Title: "the cluster's entry for the address is refused",
			Cause: "Its value makes no sense, or the policy file does not grant the address to the cluster.", Remedy: "Correct what writes it in that cluster, or the policy file: 'mesh-agent describe cluster NAME'.",
		},
	}
}
