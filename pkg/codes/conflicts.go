package codes

// What clusters disagree on.
const (
	ClusterIDConflict       Code = "MESH-1101"
	ClusterNameConflict     Code = "MESH-1102"
	MoreConflicts           Code = "MESH-1103"
	ServicePortConflict     Code = "MESH-2151"
	ServiceAffinityConflict Code = "MESH-2152"
	AddressConflict         Code = "MESH-3101"
	PodCIDRConflict         Code = "MESH-3102"
	NodeIPConflict          Code = "MESH-3103"
	IdentityRangeConflict   Code = "MESH-4101"
	IdentityTwice           Code = "MESH-4102"
)

func conflicts() []Entry {
	return append(claimConflicts(), []Entry{
		{
			Code: ClusterIDConflict, Severity: Error, Title: "a cluster ID is that of several clusters",
			Cause:  "The configurations of several clusters name one cluster ID, or the own one. The cluster that had it first keeps it; nothing is read of the others.",
			Remedy: "Give each cluster an ID of its own: cluster.id in the values of its Cilium.",
		},
		{
			Code: ClusterNameConflict, Severity: Error, Title: "several clusters answer to one name",
			Cause:  "The endpoints of one client file were answered in turn by clusters with different IDs or different nodes: one answered, then another one, then the first one again. Replicas of one clustermesh-apiserver have an etcd each, but say the same, and are no conflict. What is shown under the name is that of whoever answered last. The conflict is shown for twice as long as the answer was away that came back, from ten minutes to a day, or until the client file has other endpoints.",
			Remedy: "Look where each endpoint of the client file leads ('mesh-agent troubleshoot CLUSTER'), and give each cluster a name of its own: cluster.name in the values of its Cilium.",
		},
		{
			Code: MoreConflicts, Severity: Error, Title: "there are more conflicts than are listed",
			Cause:  "Of each cluster 200 conflicts of a kind are listed; the others are counted. So many are one mistake, such as a pod network that two clusters have, or an attack.",
			Remedy: "Resolve what the listed ones have in common. When they are gone, others take their place.",
		},
		{
			Code: ServicePortConflict, Severity: Warning, Title: "clusters disagree on the ports of a service",
			Cause:  "The clusters that share a service have backends with other names or protocols of ports. Backends are joined to a port of the service by name and protocol, so traffic to a port goes only to the clusters that have it under that name. Numbers may differ.",
			Remedy: "Give the service the same port names and protocols in each cluster.",
		},
		{
			Code: ServiceAffinityConflict, Severity: Warning, Title: "clusters disagree on the session affinity of a service",
			Cause:  "The clusters that export a service through the MCS API (ServiceExport) give it different session affinities, or different timeouts of one. The imported service has, in every cluster, that of the oldest export, so in the others clients are bound to a backend, or are not, against what was said there.",
			Remedy: "Give the service the same sessionAffinity, and the same timeout (10800 s where none is given), in each cluster: 'mesh-agent get serviceexports' shows what each one exports.",
		},
		{
			Code: AddressConflict, Severity: Error, Title: "an address is claimed by several clusters",
			Cause:  "Several clusters publish the same prefix. One claim counts, by fixed rules, and traffic for the others goes there.",
			Remedy: "Give each cluster pod networks and node addresses of its own. 'mesh-agent lookup ADDRESS' shows all claims and the rule that decided.",
		},
		{
			Code: PodCIDRConflict, Severity: Error, Title: "pod networks of several clusters overlap",
			Cause:  "A pod CIDR of one cluster is also that of another one, or contains some of another one's. The longest prefix counts, and among equal ones a fixed rule decides; where a pod publishes its own address, that counts more.",
			Remedy: "Give each cluster a pod network of its own, such as clusterPoolIPv4PodCIDRList in the values of its Cilium. Clusters whose networks overlap cannot reach each other's pods reliably.",
		},
		{
			Code: NodeIPConflict, Severity: Error, Title: "a node's address is claimed by several clusters",
			Cause:  "Nodes of several clusters have the same address, or a node's address is inside the pod network of another cluster. The longest prefix counts, and among equal ones a fixed rule decides, so traffic for a pod or a node may end at another machine.",
			Remedy: "Give the nodes of each cluster addresses of their own, outside of all pod networks. 'mesh-agent lookup ADDRESS' shows all claims and the rule that decided.",
		},
		{
			Code: IdentityRangeConflict, Severity: Error, Title: "a cluster uses identities outside of its range",
			Cause:  "Entries of the cluster carry numeric identities that belong to another cluster's range, or to none. They are refused, since policies would take one cluster's pods for another one's. Usually the cluster's ID was changed and old entries are left, two clusters write into one etcd, or the clusters differ in maxConnectedClusters.",
			Remedy: "Restart the cluster's agents and its clustermesh-apiserver after a change of its ID, so that identities are given anew; see that every cluster has an etcd of its own and the same maxConnectedClusters.",
		},
		{
			Code: IdentityTwice, Severity: Warning, Title: "equal labels have several identities in one cluster",
			Cause:  "A cluster has given several numbers to one set of labels. Each of them counts, and policies, which go by labels, treat them alike. Where identities are Kubernetes objects, two nodes may do so at the same time, and it passes when the unused one is collected; in a kvstore it should not happen.",
			Remedy: "Nothing to do, when it passes within the hour. Else 'mesh-agent identity check --cluster NAME' in that cluster shows who uses which number.",
		},
	}...)
}
