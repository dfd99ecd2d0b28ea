package kvstore

import (
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The roots of keys under the names of this field (spec kvstore.md §3). Package wire has them all, and
// builds every key from them.
const (
	BaseKeyPrefix       = "cilium"                 // of all keys
	StatePrefix         = wire.StatePrefix         // what a cluster says about itself
	CachePrefix         = wire.CachePrefix         // copies of that, made by a mirror
	ClusterConfigPrefix = wire.ClusterConfigPrefix // one configuration per cluster
	SyncedPrefix        = wire.SyncedPrefix        // canaries
	HeartbeatPath       = wire.HeartbeatKey        // written every minute
	InitLockPath        = wire.InitLockPath        // by which clients that write probe the quorum
)

// StateToCachePrefix returns where a mirror keeps the copy of what is below a prefix of [StatePrefix],
// for prefixes that keep their form there; of any other it returns the argument. The copies of
// addresses and identities have the cluster's name in another place too: [wire.Resource.Prefix] knows.
func StateToCachePrefix(prefix string) string {
	if rest, is := strings.CutPrefix(prefix, StatePrefix); is {
		return CachePrefix + rest
	}
	return prefix
}

// GetScopeFromKey is the scope by which metrics of operations tell keys apart (spec wire.md §6.2).
func GetScopeFromKey(key string) string { return wire.ScopeFromKey(key) }
