package codes

// What an operator finds about the objects of its cluster.
const (
	AddressesRefused Code = "MESH-3301"
	NumberGivenAway  Code = "MESH-4212"
	NodeRefused      Code = "MESH-5301"
	AgentsWriteToo   Code = "MESH-5302"
)

func operate() []Entry {
	return []Entry{
		{
			Code: AddressesRefused, Severity: Warning, Title: "a CiliumEndpoint is not published",
			Cause:  "An address, the encryption key or the identity in its status is none that other clusters would take. An identity outside of the cluster's range is mostly a cluster ID that differs from Cilium's. None of its addresses is published.",
			Remedy: "Look at the object that is named. Compare --cluster-id and --max-connected-clusters with Cilium's.",
		},
		{
			Code: NumberGivenAway, Severity: Error, Title: "a CiliumIdentity is not published: an agent gave its number away",
			Cause:  "An agent that allocates in the kvstore created a mapping with the number for other labels. Mappings of agents are never replaced: whoever has the number would become somebody else.",
			Remedy: "End the pods that use the number, or have Cilium give another one. It is published as soon as the number is free.",
		},
		{
			Code: NodeRefused, Severity: Warning, Title: "a CiliumNode cannot be published as it is",
			Cause:  "A network, an address or the encryption key in its spec cannot be read. What was published of the node before stays.",
			Remedy: "Look at the object that is named.",
		},
		{
			Code: AgentsWriteToo, Severity: Error, Title: "nodes and addresses are not published, since agents write their own",
			Cause:  "--publish-nodes-and-addresses is for a cluster whose agents do not write to its kvstore, and here nodes refer to identities. The operator would take the keys of the agents away, and they its keys.",
			Remedy: "Leave the option out; or end these agents, and wait until their leases have ended.",
		},
	}
}
