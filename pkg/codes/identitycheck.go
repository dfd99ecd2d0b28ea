package codes

// What 'identity check' finds in a kvstore.
const (
	IdentityOutOfRange       Code = "MESH-4201"
	MappingOutOfRange        Code = "MESH-4202"
	ReferenceWithoutMapping  Code = "MESH-4203"
	ReferenceToOtherMapping  Code = "MESH-4204"
	MappingUnused            Code = "MESH-4205"
	PublishedWithoutNode     Code = "MESH-4206"
	IdentitiesWithoutNodes   Code = "MESH-4207"
	LabelsWithSeveralNumbers Code = "MESH-4208"
	IdentityUnreadable       Code = "MESH-4209"
	IdentitiesRunOut         Code = "MESH-4210"
	LabelsInUseTwice         Code = "MESH-4211"
)

func identityCheck() []Entry {
	return []Entry{
		{
			Code: IdentityOutOfRange, Severity: Error, Title: "an identity is used that is outside the cluster's range",
			Cause:  "A node, or an address that it publishes, uses a number that belongs to another cluster ID. Other clusters refuse it.",
			Remedy: "Check --cluster-id and --max-connected-clusters on the node that uses it.",
		},
		{
			Code: MappingOutOfRange, Severity: Warning, Title: "a mapping is outside the cluster's range",
			Cause:  "A number outside the range of the cluster stands for labels. It is never collected, and other clusters refuse it. It remains from another cluster ID.",
			Remedy: "Delete its key once nothing uses it.",
		},
		{
			Code: ReferenceWithoutMapping, Severity: Error, Title: "an identity is used and no mapping says what it stands for",
			Cause:  "A node holds a reference to a number that has no mapping: other nodes may give the number to other labels.",
			Remedy: "The node puts the mapping back when it refreshes its keys. If it does not, restart its agent.",
		},
		{
			Code: ReferenceToOtherMapping, Severity: Error, Title: "an identity is used for other labels than those that it stands for",
			Cause:  "A node uses a number for labels, and its mapping names others: rules for the one hold for pods of the other.",
			Remedy: "Restart the agent of that node, so that its pods get another identity.",
		},
		{
			Code: MappingUnused, Severity: Info, Title: "nobody uses an identity",
			Cause:  "A mapping has no reference, and no address is published with it.",
			Remedy: "Nothing to do: garbage collection deletes it when it is still unused in its second round.",
		},
		{
			Code: PublishedWithoutNode, Severity: Warning, Title: "addresses are published with an identity that no node holds",
			Cause:  "Nodes keep references in this cluster, and there is none of this identity, though addresses have it: garbage collection may delete it while it is used.",
			Remedy: "The node that publishes them writes its reference when it refreshes its keys. If it does not, restart its agent.",
		},
		{
			Code: IdentitiesWithoutNodes, Severity: Info, Title: "no node holds a reference of any identity",
			Cause:  "One process writes all of this from objects of Kubernetes (CRD mode): there are identities and addresses, and no references.",
			Remedy: "Nothing to do, but never collect garbage here: identities that are in use would be deleted.",
		},
		{
			Code: LabelsWithSeveralNumbers, Severity: Error, Title: "labels have several numbers",
			Cause:  "Equal labels have several numbers in one cluster, often since they were written in another order: rules that name one do not cover pods with the other.",
			Remedy: "Restart the agents that hold references of all but one of them, and let garbage collection delete these.",
		},
		{
			Code: IdentityUnreadable, Severity: Warning, Title: "a key of the identities cannot be read",
			Cause:  "A key below the identities has a form or a value that nobody can use.",
			Remedy: "Delete the key, if no writer of today needs it.",
		},
		{
			Code: IdentitiesRunOut, Severity: Warning, Title: "a cluster's identities run out",
			Cause:  "At the rate of the time that the kvstore's history covers, all numbers of the cluster's range are used within 30 days.",
			Remedy: "Find out which labels change all the time and exclude them from identities. See that garbage collection runs.",
		},
		{
			Code: LabelsInUseTwice, Severity: Error, Title: "nodes use labels under several numbers",
			Cause:  "A node was cut off for so long that its references and then the mapping were gone, others gave the labels another number, and the node came back. A node that alone has the earlier number takes the new one. Here several nodes have each: rules that name one number do not cover pods with the other.",
			Remedy: "'mesh-agent identity heal' shows which number it would keep; with --apply it withdraws the others. Agents of ours take the number that is kept within their --kvstore-periodic-sync. Those of Cilium put theirs back: restart them first.",
		},
	}
}
