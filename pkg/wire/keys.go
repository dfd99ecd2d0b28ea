package wire

import "strings"

// The roots of the key families (wire.md §1.1).
const (
	// StatePrefix holds the entries that a cluster publishes about itself.
	StatePrefix = "cilium/state"
	// CachePrefix holds copies of other clusters' state, made by KVStoreMesh.
	CachePrefix = "cilium/cache"
	// ClusterConfigPrefix holds one configuration per cluster ([ClusterConfigKey]).
	ClusterConfigPrefix = "cilium/cluster-config"
	// SyncedPrefix holds the canaries ([SyncedKey]).
	SyncedPrefix = "cilium/synced"
	// HeartbeatKey is written every minute by the cluster's writer. Its value is never parsed, only
	// its arrival counts (wire.md §1.10). It is watched as a prefix, without a trailing slash.
	HeartbeatKey = "cilium/.heartbeat"
	// InitLockPath is the path at which clients with write access probe the quorum.
	InitLockPath = "cilium/.initlock"
	// KVStoreMeshLockPath is the path at which replicas of KVStoreMesh elect a leader.
	KVStoreMeshLockPath = "cilium/kvstoremesh-lock"
	// OperatorLockPath is the path at which the operators of mesh-agent elect a leader. Cilium does not know it.
	OperatorLockPath = "cilium/mesh-agent-operator-lock"
)

// AddressSpace is the only address space. It takes the place of the cluster name in the keys of IPs outside the
// cache.
const AddressSpace = "default"

// StorePrefix returns the resource's prefix without a cluster and without a trailing slash, as canaries name
// it: cilium/state/ip/v1 (wire.md §1.9). Readers watch another prefix, see [Resource.Prefix].
func (r Resource) StorePrefix(cached bool) string {
	if cached {
		return CachePrefix + "/" + r.Describe().Path
	}
	return StatePrefix + "/" + r.Describe().Path
}

// Prefix returns the prefix that a reader lists and watches for the resource of one cluster. It ends in a
// slash. In the cache, IPs carry the cluster's name instead of "default", and identities carry it before "id"
// (wire.md §1.1).
func (r Resource) Prefix(cluster string, cached bool) string {
	base := r.StorePrefix(cached)
	switch {
	case r == IPs && !cached:
		return base + "/" + AddressSpace + "/"
	case r == Identities && !cached:
		return base + "/id/"
	case r == Identities:
		return base + "/" + cluster + "/id/"
	default:
		return base + "/" + cluster + "/"
	}
}

// Key returns the full key of the entry with this name.
func (r Resource) Key(cluster string, cached bool, name string) string {
	return r.Prefix(cluster, cached) + name
}

// SyncedDir returns the prefix of a cluster's canaries, with a trailing slash.
func SyncedDir(cluster string) string { return SyncedPrefix + "/" + cluster + "/" }

// SyncedKey returns the key of the canary that shows that a resource of a cluster was written completely
// (wire.md §1.9).
func SyncedKey(cluster string, r Resource, cached bool) string {
	return SyncedDir(cluster) + r.StorePrefix(cached)
}

// ParseSyncedName returns the resource of a canary, given its name (its key without [SyncedDir]). It reports
// false for an unknown name; these canaries are ignored (wire.md §1.9).
func ParseSyncedName(name string) (r Resource, cached, ok bool) {
	for _, r := range Resources() {
		switch name {
		case r.StorePrefix(false):
			return r, false, true
		case r.StorePrefix(true):
			return r, true, true
		}
	}
	return "", false, false
}

// ClusterConfigKey returns the key of a cluster's configuration (wire.md §2).
func ClusterConfigKey(cluster string) string { return ClusterConfigPrefix + "/" + cluster }

// Join joins the parts with slashes, replaces every run of slashes by one, and removes trailing slashes. A
// leading slash stays; "." and ".." have no meaning.
func Join(parts ...string) string {
	joined := strings.Join(parts, "/")
	for strings.Contains(joined, "//") {
		joined = strings.ReplaceAll(joined, "//", "/")
	}
	return strings.TrimSuffix(joined, "/")
}

// ScopeFromKey shortens a key to the scope that metrics are labelled with: its third and fourth
// components, or the first 12 bytes of a key with fewer than four (wire.md §6.2).
func ScopeFromKey(key string) string {
	parts := strings.SplitN(key, "/", 5)
	if len(parts) >= 4 {
		return parts[2] + "/" + parts[3]
	}
	return key[:min(len(key), 12)]
}
