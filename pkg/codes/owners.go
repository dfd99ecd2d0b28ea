package codes

import "slices"

// Who finds something.
const (
	Events    Owner = "events"    // pkg/findings: what became of the clusters
	Conflicts Owner = "conflicts" // pkg/findings: what clusters disagree on
	States    Owner = "states"    // pkg/remotecluster: why a cluster is as it is
	Reasons   Owner = "reasons"   // pkg/reasons: why something is, or is not, as one expects
	Policy    Owner = "policy"    // pkg/findings: what the disconnect policy does
)

// owners are the parts of the registry, by who finds what is in them.
func owners() map[Owner][]Entry {
	return map[Owner][]Entry{
		Events:    events(),
		Conflicts: conflicts(),
		States:    states(),
		Reasons:   slices.Concat(serviceReasons(), addressReasons(), identityReasons(), nodeReasons(), clusterReasons()),
		Policy:    policy(),
	}
}
