// Package allocator allocates numeric IDs for the label sets of the own cluster. Package identities has a table of
// the identities of all clusters.
//
// An [Allocator] gives each key an ID, which is the same on every node. Any number of nodes work in parallel; they
// share only a store, the [Backend] (spec allocator.md). A *mapping* is the entry that gives an ID to a key. A *node
// reference* is the entry with which a node declares that it uses a key. (Cilium's documents call them master key and
// slave key.)
//
// Two guarantees hold under all failures. First, nodes that use a key at the same time have the same ID for it: under
// the key's lock, the allocator takes the ID of any node's reference; without one, the ID of a mapping that it has
// seen; and a new ID only if there is neither. Second, an ID belongs to one key: a mapping is only created where none
// exists. Before it takes a new ID, the node waits until it has received every mapping that existed when it got the
// lock. Other programs that skip this wait may give a key a duplicate: a second mapping, next to one without
// references. Of duplicates the allocator takes the least ID, and garbage collection removes the other.
//
// [Allocator.Run] owns every goroutine: it follows the mappings, refreshes the keys that this node uses, writes
// mappings in use again that others deleted, and deletes node references whose first deletion failed. All other
// methods may be called by any goroutine.
//
// # Design
//
// The state of the allocator is a pure core (core.go: uses, mappings, pool, the keys that are being worked on, the
// jobs that are due). The code around it calls the backend in straight sequences. At most one allocation or job works
// on a key at a time, so an allocation never meets the deletion of its own reference. When the creation of an ID gets
// no answer, that ID is tried again before another one, so that no duplicate is left. A node that was cut off for
// longer than its leases may find its key under another ID. If no other node refers to the earlier ID, the node takes
// the other one and republishes its pods. Otherwise both IDs stay and are reported (MESH-4211) until 'identity heal'
// withdraws one.
//
// # Names
//
// The left column has names of Cilium's allocator, the right column their equivalents here.
//
//	Allocator, NewAllocator        the same; the backend is the first argument
//	NewAllocatorForGC              the same
//	Key, Backend, CacheMutations   the same; a modified mapping is an upsert
//	AllocateIDIfLocked,            AllocateID, UpdateKey, Get with a lock that is
//	UpdateKeyIfLocked,             not nil
//	GetIfLocked of the backend
//	RangeFunc, ForeachCache        Allocator.ForEach, an iterator
//	WithBackend                    the first argument
//	WithEvents, GetEvents          the same; the channel is the allocator's own
//	AllocatorEvent                 the same
//	WithMasterKeyProtection        the same: mappings in use are put back
//	WithMin, WithMax,              the same, and WithCluster for the range of a
//	WithPrefixMask                 cluster
//	WithoutGC                      refuses RunGC and RunLocksGC, and still refreshes the
//	                               keys in use; Cilium's stops refreshing, and still
//	                               collects when RunGC is called
//	Allocate, Release, Get,        the same
//	GetIfLocked, GetNoCache,
//	GetByID, GetInclude...
//	RunGC, RunLocksGC,             the same
//	WaitForInitialSync,
//	DeleteAllKeys, ListIDs,
//	DeleteID
//	WatchRemoteKVStore             the same
//	RemoteCache                    the same; OnSync and RemoteEvents are options of it
//	WithCacheValidator             WithValidator, and accept of WatchRemoteKVStore
//	Delete                         cancel Run's context, and wait for Run
//	ErrIdentityNonExistent         the same
//	RemoteIDCache                  RemoteCache; package identities has the table of all
//	RemoteIdentityWatcher,         store.Watch feeding [identities.Identities.Apply] (package
//	WatchRemoteIdentities          clustermesh); WatchRemoteKVStore for an Allocator
package allocator
