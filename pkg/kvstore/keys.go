package kvstore

import (
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Roots of keys, under their usual names (spec kvstore.md §3). Package wire has all roots, and builds
// every key from them.
const (
	BaseKeyPrefix       = "cilium"                 // of all keys
	StatePrefix         = wire.StatePrefix         // a cluster's own data
	CachePrefix         = wire.CachePrefix         // copies of those keys, written by a mirror
	ClusterConfigPrefix = wire.ClusterConfigPrefix // one configuration per cluster
	SyncedPrefix        = wire.SyncedPrefix        // canaries
	HeartbeatPath       = wire.HeartbeatKey        // written every minute
	InitLockPath        = wire.InitLockPath        // clients that write probe the quorum with this key
)

// StateToCachePrefix returns the prefix below which a mirror keeps the copies of the keys below a prefix of
// [StatePrefix], for resources whose copies keep the form of the prefix. It returns any other prefix
// unchanged. Copies of addresses and identities also have the cluster's name in a different place:
// [wire.Resource.Prefix] returns their prefix.
func StateToCachePrefix(prefix string) string {
	if rest, is := strings.CutPrefix(prefix, StatePrefix); is {
		return CachePrefix + rest
	}
	return prefix
}

// GetScopeFromKey returns the scope of a key, which is a label of the metrics of operations (spec wire.md §6.2).
func GetScopeFromKey(key string) string { return wire.ScopeFromKey(key) }
