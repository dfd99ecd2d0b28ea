package codes

// What clusters disagree on.
const (
	ClusterIDConflict Code = "MESH-1101"
	AddressConflict   Code = "MESH-3101"
)

func conflicts() []Entry {
	return []Entry{
		{
			Code: ClusterIDConflict, Severity: Error, Title: "a cluster ID is that of several clusters",
			Cause:  "The configurations of several clusters name one cluster ID, or the own one. The cluster that had it first keeps it; nothing is read of the others.",
			Remedy: "Give each cluster an ID of its own: cluster.id in the values of its Cilium.",
		},
		{
			Code: AddressConflict, Severity: Error, Title: "an address is claimed by several clusters",
			Cause:  "Several clusters publish the same prefix. One claim counts, by fixed rules, and traffic for the others goes there.",
			Remedy: "Give each cluster pod networks and node addresses of its own. 'mesh-agent lookup ADDRESS' shows all claims and the rule that decided.",
		},
	}
}
