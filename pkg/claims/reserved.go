package claims

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Privileged tells whether policies trust the reserved identity in a way that only
// the reader's own cluster can vouch for, or whether it means no single endpoint:
// a host, a node, the API server, the world, the aggregates. A remote publishes
// remote-node for the addresses of its nodes alone (see atNode). What Cilium does
// publish for endpoints is not privileged: health, ingress, init, unmanaged, the
// well-known identities, and those that users reserve (wire.md §1.7, §2.3).
func Privileged(identity uint32, atNode bool) bool {
	switch identity {
	case wire.IdentityHost, wire.IdentityRemoteNode:
		return !atNode
	case wire.IdentityWorld, wire.IdentityWorldIPv4, wire.IdentityWorldIPv6, wire.IdentityKubeAPIServer,
		wire.IdentityAggregateCluster, wire.IdentityAggregateClusterMesh, wire.IdentityAggregateWorld, wire.IdentityAggregateRemoteNode:
		return true
	}
	return false
}
