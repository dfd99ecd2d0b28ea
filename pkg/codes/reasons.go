package codes

// Why a service is global or not: the verdict.
const (
	ServiceGlobal      Code = "MESH-2000"
	ServiceUnknown     Code = "MESH-2100"
	ServiceNowhere     Code = "MESH-2101"
	OwnNotGlobal       Code = "MESH-2102"
	NotShared          Code = "MESH-2103"
	NotExported        Code = "MESH-2104"
	NoOwnService       Code = "MESH-2105"
	AffinityLocal      Code = "MESH-2106"
	AffinityRemote     Code = "MESH-2107"
	NoBackends         Code = "MESH-2108"
	RefusedEverywhere  Code = "MESH-2109"
	BackendsWithheldBy Code = "MESH-2110"
)

// What a cluster has of a service: the steps.
const (
	PartUsed        Code = "MESH-2201"
	PartStandsBy    Code = "MESH-2202"
	PartNotShared   Code = "MESH-2203"
	PartNotExported Code = "MESH-2204"
	PartUnknown     Code = "MESH-2205"
	PartRefused     Code = "MESH-2206"
	PartWithheld    Code = "MESH-2207"
	PartEmpty       Code = "MESH-2208"
	PartDemoted     Code = "MESH-2209"
	PartKept        Code = "MESH-2210"
	PartsRefused    Code = "MESH-2250"
	PartBarred      Code = "MESH-2260"
)

// Whose an address is, and what became of a claim.
const (
	AddressOwned     Code = "MESH-3000"
	AddressInNetwork Code = "MESH-3001"
	AddressContested Code = "MESH-3002"
	AddressUnclaimed Code = "MESH-3003"
	AddressUnknown   Code = "MESH-3004"
	ClaimWon         Code = "MESH-3201"
	ClaimShorter     Code = "MESH-3202"
	ClaimLost        Code = "MESH-3203"
	ClaimsUnknown    Code = "MESH-3204"
	ClaimsUntold     Code = "MESH-3210"
	ClaimsRefused    Code = "MESH-3211"
)

// What is known of an identity.
const (
	IdentityKnown    Code = "MESH-4000"
	IdentityReserved Code = "MESH-4001"
	IdentityNowhere  Code = "MESH-4002"
	IdentityUnknown  Code = "MESH-4003"
	MappingRead      Code = "MESH-4301"
	MappingRefused   Code = "MESH-4302"
	MappingUnknown   Code = "MESH-4303"
	MappingsRefused  Code = "MESH-4350"
)

// What is known of a node.
const (
	NodeKnown       Code = "MESH-5000"
	NodeNotAsOfNow  Code = "MESH-5001"
	NodeAddressLost Code = "MESH-5002"
	NodeNowhere     Code = "MESH-5003"
	NodeUnknown     Code = "MESH-5004"
	NodeRead        Code = "MESH-5201"
	NodeClaimCounts Code = "MESH-5202"
	NodeClaimLost   Code = "MESH-5203"
	NodesRefused    Code = "MESH-5250"
)

// What is known of a cluster, beside its state.
const (
	ClusterFile          Code = "MESH-1301"
	ClusterSession       Code = "MESH-1302"
	ClusterNoSession     Code = "MESH-1303"
	ClusterConfiguration Code = "MESH-1304"
	ResourceFresh        Code = "MESH-1305"
	ResourceNotFresh     Code = "MESH-1306"
	ResourceNotExported  Code = "MESH-1307"
	HeartbeatSeen        Code = "MESH-1308"
	HeartbeatMissing     Code = "MESH-1309"
)

// What to do where a copy is the question.
const (
	lookAtCluster = "'mesh-agent describe cluster NAME' says why, and what to do."
	lookAtRefused = "'mesh-agent describe cluster NAME' names an entry that is refused, and why. Where it is over its budget, raise --remote-budget (docs/budgets.md); else correct what writes them there."
	fine          = "Nothing to do."
)

func serviceReasons() []Entry {
	const annotate = "Annotate the service with service.cilium.io/global=true in each cluster that is to share it, under the same namespace and name."
	return []Entry{
		{
			Code: ServiceGlobal, Severity: Info, Title: "the service is global",
			Cause: "Several clusters are joined under this namespace and name, and traffic goes to the backends that the steps name.", Remedy: fine,
		},
		{
			Code: ServiceUnknown, Severity: Warning, Title: "nobody is known to have the service",
			Cause:  "No cluster that is known as of now has it, and there are clusters of which that cannot be said, or of which services are refused.",
			Remedy: lookAtCluster,
		},
		{
			Code: ServiceNowhere, Severity: Info, Title: "no cluster exports the service",
			Cause: "All clusters are known as of now, and none exports a service of this namespace and name.", Remedy: annotate,
		},
		{
			Code: OwnNotGlobal, Severity: Info, Title: "not global: the own cluster's service is not",
			Cause:  "The service of the own cluster is not annotated as global, so it uses its own backends only, whatever others share.",
			Remedy: annotate,
		},
		{
			Code: NotShared, Severity: Info, Title: "not global: it is not shared",
			Cause:  "Clusters publish the service with shared=false: it uses others' backends there, and offers none.",
			Remedy: "Remove the annotation service.cilium.io/shared=false there, if its backends are to be used.",
		},
		{
			Code: NotExported, Severity: Info, Title: "not global: another cluster does not export it",
			Cause:  "The own cluster's service is global, and no other cluster shares one of the same namespace and name, so there is nothing to join.",
			Remedy: annotate,
		},
		{
			Code: NoOwnService, Severity: Info, Title: "not used: the own cluster has no such service",
			Cause:  "Other clusters share it, and a service of the same namespace and name is missing in the own one, so nothing here leads to their backends.",
			Remedy: "Create the service in the own cluster, with the annotation service.cilium.io/global=true.",
		},
		{
			Code: AffinityLocal, Severity: Info, Title: "global, with local affinity: others stand by",
			Cause:  "The own cluster's service has the affinity local, and a backend of its own is healthy: traffic stays here.",
			Remedy: "Nothing to do. The others take over when no local backend is healthy.",
		},
		{
			Code: AffinityRemote, Severity: Info, Title: "global, with remote affinity: the own backends stand by",
			Cause:  "The own cluster's service has the affinity remote, and a backend of another cluster is healthy: traffic goes there.",
			Remedy: "Nothing to do. The own ones take over when no other is healthy.",
		},
		{
			Code: NoBackends, Severity: Warning, Title: "global, and without backends",
			Cause:  "It is shared, and nobody has a backend that may be used.",
			Remedy: "Look at the pods behind the service in the clusters that share it.",
		},
		{
			Code: RefusedEverywhere, Severity: Error, Title: "not global: the entries are refused",
			Cause:  "Clusters publish the service with values that make no sense or do not belong to them.",
			Remedy: "Correct what writes them: the steps name the keys and what is wrong with them.",
		},
		{
			Code: BackendsWithheldBy, Severity: Warning, Title: "global, with backends that are not used as usual",
			Cause:  "A cluster that shares it was not confirmed for too long, and its backends are not used, or only when there are no others.",
			Remedy: lookAtCluster,
		},
		{Code: PartUsed, Severity: Info, Title: "the cluster's backends are used", Cause: "The cluster shares the service, and traffic goes to its backends.", Remedy: fine},
		{Code: PartStandsBy, Severity: Info, Title: "the cluster's backends stand by", Cause: "The affinity prefers others, or the own service is not global.", Remedy: fine},
		{
			Code: PartNotShared, Severity: Info, Title: "the cluster does not share its service",
			Cause: "It publishes it with shared=false.", Remedy: "Remove the annotation service.cilium.io/shared=false there, if its backends are to be used.",
		},
		{
			Code: PartNotExported, Severity: Info, Title: "the cluster does not export the service",
			Cause: "Its services are known as of the time in the step, and this is none of them.", Remedy: annotate,
		},
		{
			Code: PartUnknown, Severity: Warning, Title: "what the cluster has is not known as of now",
			Cause: "Its services were not confirmed lately, or were never copied completely.", Remedy: lookAtCluster,
		},
		{
			Code: PartRefused, Severity: Error, Title: "the cluster's entry is refused",
			Cause: "Its value makes no sense, or does not belong to the cluster; one before it stays in force, if there was one.", Remedy: "Correct what writes it in that cluster.",
		},
		{
			Code: PartWithheld, Severity: Warning, Title: "the cluster's backends are withheld",
			Cause: "The cluster was without contact, or was not confirmed, for longer than is allowed.", Remedy: lookAtCluster,
		},
		{
			Code: PartDemoted, Severity: Warning, Title: "the cluster's backends stand by: it is in doubt",
			Cause: "The disconnect policy has demoted the cluster, and another one has a usable backend.", Remedy: lookAtCluster,
		},
		{
			Code: PartKept, Severity: Warning, Title: "the cluster's backends are used although it is in doubt",
			Cause: "The disconnect policy is against the cluster, and no other one has a usable backend: the last ones of a service are never taken away.", Remedy: lookAtCluster,
		},
		{
			Code: PartBarred, Severity: Error, Title: "backends of the cluster are not used: no remote can have their addresses",
			Cause:  "They are inside the own networks or on addresses for special use, and --claim-policy=enforce is set. The cluster's other backends are used as usual.",
			Remedy: lookAtBackends,
		},
		{
			Code: PartsRefused, Severity: Warning, Title: "the cluster may have the service: services of it are refused",
			Cause: "Its services are known as of now, but for those that are refused. This may be one of them.", Remedy: lookAtRefused,
		},
		{
			Code: PartEmpty, Severity: Warning, Title: "the cluster shares the service without backends",
			Cause: "It exports the service, and no address for it.", Remedy: "Look at the pods behind the service in that cluster.",
		},
	}
}

func addressReasons() []Entry {
	return []Entry{
		{Code: AddressOwned, Severity: Info, Title: "the address belongs to somebody", Cause: "One claim on it counts.", Remedy: fine},
		{
			Code: AddressInNetwork, Severity: Info, Title: "the address is in somebody's network",
			Cause: "Nobody claims the address itself; the longest network that has it counts.", Remedy: fine,
		},
		{
			Code: AddressContested, Severity: Error, Title: "several clusters claim the address",
			Cause:  "One claim counts, by fixed rules, and traffic for the others goes there.",
			Remedy: "Give each cluster pod networks and node addresses of its own.",
		},
		{Code: AddressUnclaimed, Severity: Info, Title: "nobody claims the address", Cause: "All clusters are known as of now, and none claims it or a network that has it.", Remedy: fine},
		{
			Code: AddressUnknown, Severity: Warning, Title: "nobody is known to claim the address",
			Cause: "There are clusters whose addresses are not known as of now, or are refused in part. A network that has the address may be known all the same.", Remedy: lookAtCluster,
		},
		{Code: ClaimWon, Severity: Info, Title: "the claim counts", Cause: "It is the only one, or the best one to the longest prefix.", Remedy: fine},
		{Code: ClaimShorter, Severity: Info, Title: "the claim is of a shorter prefix", Cause: "A longer prefix that has the address counts.", Remedy: fine},
		{Code: ClaimLost, Severity: Warning, Title: "the claim lost against one to the same prefix", Cause: "The step names the rule.", Remedy: "Give each cluster addresses of its own."},
		{
			Code: ClaimsUnknown, Severity: Warning, Title: "what the cluster claims is not known as of now",
			Cause: "It may claim the address by now, or have given it up.", Remedy: lookAtCluster,
		},
		{
			Code: ClaimsRefused, Severity: Warning, Title: "the cluster may claim it: addresses of it are refused",
			Cause: "Its addresses and nodes are known as of now, but for those that are refused. One of them may be the address.", Remedy: lookAtRefused,
		},
		{
			Code: ClaimsUntold, Severity: Warning, Title: "there are more claims than are told",
			Cause:  "More than 128 claims are on one prefix: the strongest of each cluster and kind are told.",
			Remedy: "Ask those who run the cluster: so many nodes with one address, or so many host bits of one network, are a mistake or an attack.",
		},
	}
}

func identityReasons() []Entry {
	return []Entry{
		{Code: IdentityKnown, Severity: Info, Title: "the identity is known", Cause: "A cluster has published its labels.", Remedy: fine},
		{Code: IdentityReserved, Severity: Info, Title: "the identity is reserved", Cause: "Its number means the same everywhere and is never published.", Remedy: fine},
		{
			Code: IdentityNowhere, Severity: Warning, Title: "nobody has published the identity",
			Cause:  "All clusters are known as of now, and none has a mapping of the number. It was collected as unused, or never written.",
			Remedy: "If addresses have it, look at what allocates identities in that cluster: 'mesh-agent identity check'.",
		},
		{
			Code: IdentityUnknown, Severity: Warning, Title: "nobody is known to have published the identity",
			Cause: "There are clusters whose identities are not known as of now, or are refused in part.", Remedy: lookAtCluster,
		},
		{Code: MappingRead, Severity: Info, Title: "the mapping was read", Cause: "It is the key that says which labels the number means.", Remedy: fine},
		{
			Code: MappingRefused, Severity: Error, Title: "the mapping is refused",
			Cause: "Its value makes no sense, or its number is outside of what the cluster may use.", Remedy: "Correct what writes it in that cluster.",
		},
		{Code: MappingUnknown, Severity: Warning, Title: "what the cluster has is not known as of now", Cause: "Its identities were not confirmed lately.", Remedy: lookAtCluster},
		{
			Code: MappingsRefused, Severity: Warning, Title: "the cluster may have it: identities of it are refused",
			Cause: "Its identities are known as of now, but for those that are refused. This may be one of them.", Remedy: lookAtRefused,
		},
	}
}

func nodeReasons() []Entry {
	return []Entry{
		{Code: NodeKnown, Severity: Info, Title: "the node is known", Cause: "Its cluster has published it, and all its addresses count as its own.", Remedy: fine},
		{Code: NodeNotAsOfNow, Severity: Warning, Title: "the node is known as of an earlier time", Cause: "The nodes of its cluster were not confirmed lately: it may have changed, or be gone.", Remedy: lookAtCluster},
		{
			Code: NodeAddressLost, Severity: Error, Title: "an address of the node counts as another's",
			Cause: "Somebody else's claim to it is stronger; traffic to the address goes there.", Remedy: "Give each cluster node addresses and pod networks of its own.",
		},
		{Code: NodeNowhere, Severity: Info, Title: "there is no such node", Cause: "The nodes of the cluster are known as of now, and this is none of them.", Remedy: fine},
		{Code: NodeUnknown, Severity: Warning, Title: "the node is not known", Cause: "The nodes of the cluster are not known as of now, or are refused in part, or the cluster itself is not known.", Remedy: lookAtCluster},
		{Code: NodeRead, Severity: Info, Title: "the node was read", Cause: "It is the key that its cluster has written.", Remedy: fine},
		{Code: NodeClaimCounts, Severity: Info, Title: "the address counts as the node's", Cause: "Its claim is the only one, or the strongest.", Remedy: fine},
		{
			Code: NodesRefused, Severity: Warning, Title: "the cluster may have it: nodes of it are refused",
			Cause: "Its nodes are known as of now, but for those that are refused. This may be one of them.", Remedy: lookAtRefused,
		},
		{Code: NodeClaimLost, Severity: Error, Title: "the address counts as another's", Cause: "The step names the rule.", Remedy: "Give each cluster addresses of its own."},
	}
}

func clusterReasons() []Entry {
	return []Entry{
		{Code: ClusterFile, Severity: Info, Title: "the client file was read", Cause: "It says where the cluster's etcd is.", Remedy: fine},
		{Code: ClusterSession, Severity: Info, Title: "there is a session", Cause: "The etcd answers.", Remedy: fine},
		{Code: ClusterNoSession, Severity: Warning, Title: "there is no session", Cause: "No endpoint could be connected, or the last session has ended.", Remedy: "'mesh-agent troubleshoot CLUSTER' finds out which step fails."},
		{Code: ClusterConfiguration, Severity: Info, Title: "the cluster's configuration was read", Cause: "It says which ID the cluster has and what it exports.", Remedy: fine},
		{Code: ResourceFresh, Severity: Info, Title: "the resource is known as of now", Cause: "A read of the etcd has proved that everything up to it was applied.", Remedy: fine},
		{Code: ResourceNotFresh, Severity: Warning, Title: "the resource is not known as of now", Cause: "No such proof came lately, or a list is not complete.", Remedy: "See the verdict of the cluster."},
		{Code: ResourceNotExported, Severity: Info, Title: "the cluster does not export the resource", Cause: "Its configuration says so.", Remedy: fine},
		{Code: HeartbeatSeen, Severity: Info, Title: "the heartbeat is written", Cause: "Somebody keeps the cluster's state up to date.", Remedy: fine},
		{
			Code: HeartbeatMissing, Severity: Warning, Title: "the heartbeat is missing",
			Cause:  "Nobody has written it for two minutes, or none was ever seen. It says nothing about the data, which is what the etcd has.",
			Remedy: "Look at what writes that cluster's state: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy.",
		},
	}
}
