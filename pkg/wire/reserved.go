package wire

// The reserved numeric identities that have a meaning here (wire.md §2.3). [ReservedIdentityName] has all. 100
// to 115 are well-known identities, 128 to 255 are reserved for users; they have no names.
const (
	IdentityUnknown              uint32 = 0
	IdentityHost                 uint32 = 1
	IdentityWorld                uint32 = 2
	IdentityHealth               uint32 = 4
	IdentityRemoteNode           uint32 = 6
	IdentityKubeAPIServer        uint32 = 7
	IdentityIngress              uint32 = 8
	IdentityWorldIPv4            uint32 = 9
	IdentityWorldIPv6            uint32 = 10
	IdentityAggregateCluster     uint32 = 11
	IdentityAggregateClusterMesh uint32 = 12
	IdentityAggregateWorld       uint32 = 13
	IdentityAggregateRemoteNode  uint32 = 14

	// IdentityReservedEnd is the first identity that is not reserved.
	IdentityReservedEnd uint32 = 256
)

// ReservedIdentityName returns the name of a reserved identity, and false for every other one.
func ReservedIdentityName(id uint32) (string, bool) {
	names := [...]string{
		"unknown", "host", "world", "unmanaged", "health", "init", "remote-node", "kube-apiserver", "ingress", "world-ipv4", "world-ipv6",
		"aggregate-cluster", "aggregate-cluster-mesh", "aggregate-world", "aggregate-remote-node",
	}
	if id >= uint32(len(names)) {
		return "", false
	}
	return names[id], true
}
