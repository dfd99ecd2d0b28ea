package codes

// What the disconnect policy does.
const (
	ClusterDemoted   Code = "MESH-1018"
	ClusterWithdrawn Code = "MESH-1019"
	PolicyHeld       Code = "MESH-1021"
	PolicyResumed    Code = "MESH-1022"
	ClusterKept      Code = "MESH-1023"
)

func policy() []Entry {
	const troubleshoot = "'mesh-agent troubleshoot CLUSTER' finds out from this node which step of a connection fails. "
	const delays = "Its delays are those of --disconnect-policy; 'mesh-agent describe cluster NAME' says what happens next and when."
	return []Entry{
		{
			Code: ClusterDemoted, Severity: Warning, Title: "a cluster is demoted",
			Cause: "Its services could not be confirmed for too long, or its etcd answers but nothing is heard of what writes there. " +
				"Its service backends are used only where no other cluster has a usable one. Everything else is kept.",
			Remedy: troubleshoot + "It is restored by itself. " + delays,
		},
		{
			Code: ClusterWithdrawn, Severity: Error, Title: "a cluster's service backends are withdrawn",
			Cause: "Its services could not be confirmed for so long that their backends are probably others' by now. They are removed from every " +
				"service of which another cluster has a usable backend. Its nodes, identities and addresses are kept.",
			Remedy: troubleshoot + "It is restored by itself. When the cluster is gone for good, remove its client file. " + delays,
		},
		{
			Code: PolicyHeld, Severity: Error, Title: "the disconnect policy is held",
			Cause: "More than half of the clusters are in doubt at the same time. Then the trouble is probably on our side, and no cluster " +
				"is demoted or withdrawn until that is over. What was before stays.",
			Remedy: "Look at the network of this node, at its DNS and at its clock first, then at the clusters that the event names. Remove the client " +
				"files of those that are gone for good: they count.",
		},
		{
			Code: PolicyResumed, Severity: Info, Title: "the disconnect policy is not held any more",
			Cause:  "No more than half of the clusters are in doubt. Those that still are have a while to answer before anything is done.",
			Remedy: "Nothing to do.",
		},
		{
			Code: ClusterKept, Severity: Info, Title: "a cluster is restored",
			Cause:  "It was confirmed without a break for long enough: its service backends are used as those of any cluster.",
			Remedy: "Nothing to do.",
		},
	}
}
