package operate

import (
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The roles of etcd's users in a mesh. Cilium has root, remote and local, with the
// same rights (wire.md §0); there each writer is root.
const (
	RoleRoot     = "root"     // everything
	RoleNode     = "node"     // an agent: writes what a node says of itself
	RoleOperator = "operator" // writes what one process says of the cluster
	RoleMirror   = "mirror"   // writes the copies of other clusters
	RoleRemote   = "remote"   // reads what this cluster says of itself
	RoleLocal    = "local"    // reads the copies of other clusters
)

// Roles are all roles.
func Roles() []string {
	return []string{RoleRoot, RoleNode, RoleOperator, RoleMirror, RoleRemote, RoleLocal}
}

// Users are those of a cluster: its administrators, its writers, who read its state
// from other clusters, and who read the copies of other clusters in it.
func Users(cluster string) []User {
	return []User{
		{"root", RoleRoot},
		{"admin-" + cluster, RoleRoot},
		{"node", RoleNode},
		{"operator", RoleOperator},
		{"mirror", RoleMirror},
		{"remote", RoleRemote},
		{"local-" + cluster, RoleLocal},
	}
}

// Rights are those of a role in the kvstore of a cluster. Root has all of them
// without being given any.
//
// Every role reads the heartbeat, which is how a session is proved to be alive.
func Rights(role, cluster string) []etcd.Access {
	switch role {
	case RoleNode:
		return append(readState(cluster), writeOwn(cluster, wire.Nodes, wire.IPs, wire.Identities)...)
	case RoleOperator:
		return operatorRights(cluster)
	case RoleMirror:
		return mirrorRights(cluster)
	case RoleRemote:
		return readState(cluster)
	case RoleLocal:
		return []etcd.Access{
			read(wire.HeartbeatKey),
			read(wire.CachePrefix + "/"),
			read(wire.ClusterConfigPrefix + "/"),
			read(wire.SyncedPrefix + "/"),
		}
	}
	return nil
}

// readState is what a cluster says of itself.
func readState(cluster string) []etcd.Access {
	return []etcd.Access{
		read(wire.HeartbeatKey),
		read(wire.StatePrefix + "/"),
		{Prefix: wire.ClusterConfigKey(cluster), Whole: true},
		read(wire.SyncedDir(cluster)),
	}
}

// writeOwn is the right to write resources of the cluster. Identities come with the
// references of nodes and the locks under which they are given.
func writeOwn(cluster string, resources ...wire.Resource) []etcd.Access {
	var rights []etcd.Access
	for _, r := range resources {
		rights = append(rights, write(r.Prefix(cluster, false)))
		if r == wire.Identities {
			rights = append(rights, write(wire.IdentityAllocation.References()), write(wire.IdentityAllocation.Locks()))
		}
	}
	return rights
}

// operatorRights: mappings of identities are written where Cilium keeps identities as objects
// of Kubernetes, and deleted when nobody uses them, under the locks of those who allocate.
// References of nodes are never the operator's. It follows the configurations of all
// clusters, since its own is among them.
func operatorRights(cluster string) []etcd.Access {
	return append([]etcd.Access{
		{Prefix: wire.HeartbeatKey, Whole: true, Write: true},
		read(wire.HeartbeatKey),
		read(wire.StatePrefix + "/"),
		read(wire.ClusterConfigPrefix + "/"),
		{Prefix: wire.ClusterConfigKey(cluster), Whole: true, Write: true},
		write(wire.SyncedDir(cluster)),
		write(LockPath + "/"),
		write(wire.Identities.Prefix(cluster, false)),
		write(wire.IdentityAllocation.Locks()),
	}, writeOwn(cluster, append(serviceResources(), wire.Nodes, wire.IPs)...)...)
}

// mirrorRights: the configuration and the canaries of every cluster but the own
// one. Whatever a remote says, the mirror cannot speak for its own cluster.
func mirrorRights(cluster string) []etcd.Access {
	rights := []etcd.Access{
		read(wire.HeartbeatKey),
		write(wire.CachePrefix + "/"),
		read(wire.ClusterConfigPrefix + "/"),
		read(wire.SyncedPrefix + "/"),
		write(wire.KVStoreMeshLockPath + "/"),
	}
	own := etcd.Access{Prefix: wire.ClusterConfigKey(cluster), Whole: true}
	rights = append(rights, writeAround(wire.ClusterConfigPrefix+"/", own.Prefix, own.Prefix+"\x00")...)
	canaries := read(wire.SyncedDir(cluster))
	return append(rights, writeAround(wire.SyncedPrefix+"/", canaries.Prefix, canaries.End())...)
}

// writeAround is the right to write what begins with a prefix, without the keys from
// one up to another.
func writeAround(prefix, from, to string) []etcd.Access {
	return []etcd.Access{
		{Prefix: prefix, Until: from, Write: true},
		{Prefix: to, Until: read(prefix).End(), Write: true},
	}
}

func read(prefix string) etcd.Access { return etcd.Access{Prefix: prefix} }

func write(prefix string) etcd.Access { return etcd.Access{Prefix: prefix, Write: true} }
