package codes

// Owner is the part of the program that finds something. Its tests prove that
// each of its codes is reached.
type Owner string

// The owners.
const (
	Events    Owner = "events"    // pkg/findings: what became of the clusters
	Conflicts Owner = "conflicts" // pkg/findings: what clusters disagree on
	States    Owner = "states"    // pkg/remotecluster: why a cluster is as it is
	Reasons   Owner = "reasons"   // pkg/reasons: why something is, or is not, as one expects
	Policy    Owner = "policy"    // pkg/findings: what the disconnect policy does

	Checks        Owner = "checks"        // pkg/checks: a mesh directory before it is applied
	Troubleshoot  Owner = "troubleshoot"  // pkg/troubleshoot: why a cluster cannot be connected
	IdentityCheck Owner = "identitycheck" // pkg/identity: the identities that a kvstore holds
	API           Owner = "api"           // pkg/api: what the agent says of itself
	Mirror        Owner = "mirror"        // pkg/mirror: how full our own etcd is
	Operate       Owner = "operate"       // pkg/operate: what its cluster's objects say
	Agent         Owner = "agent"         // pkg/findings: what became of the agent's surroundings
)
