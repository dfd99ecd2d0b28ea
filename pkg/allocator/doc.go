// Package allocator gives numbers to the label sets of the own cluster. The identities of every cluster, as a table,
// are those of package identities.
//
// An [Allocator] gives every key a number, the same on every node; any number of nodes work in
// parallel, and a shared store, the [Backend], is all that they share (spec allocator.md). Words: a
// *mapping* is the entry that gives an ID to a key, a *node reference* the one with which a node
// says that it uses the key. (Cilium's documents call them master key and slave key.)
//
// What holds, whatever fails: nodes that use one key at the same time have the same ID for it,
// since under the key's lock a reference of anybody decides, then a mapping that was seen, and only
// then a new ID is taken; and one ID belongs to one key, since a mapping is only ever created where
// none is. Before a new ID is taken the node catches up with every mapping that was there when it
// got the lock. Others who do not do that may give a key a duplicate, beside a mapping that nobody
// refers to: of duplicates the least is taken, and garbage collection removes the other.
//
// [Allocator.Run] owns every goroutine: it follows the mappings, refreshes what
// this node uses, puts back what others deleted, and deletes node references
// whose deletion failed. Everything else may be called by any goroutine.
//
// # Design
//
// The allocator's state is a pure core (core.go: uses, mappings, pool, who works on a key, which
// jobs are due), and around it are the calls of the backend in a straight line. At most one works
// on a key at a time, an allocation or a job, so an allocation never meets the deletion of its own
// reference. An ID whose creation had no answer is tried again before another, so that no duplicate
// is left. A node that was cut off for longer than its leases may find its key under another ID: it
// takes that, and republishes its pods, when nobody else refers to the earlier one; else both stay
// and are reported (MESH-4211) until 'identity heal' withdraws one.
//
// # Names
//
// What people of this field look for is found under these names.
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
//	WithoutGC                      refuses RunGC and RunLocksGC, and goes on to refresh
//	                               what is in use; Cilium's stops refreshing, and
//	                               collects when it is asked to
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
//	Delete                         the end of Run's context, and waiting for Run
//	ErrIdentityNonExistent         the same
//	RemoteIDCache                  RemoteCache; package identities has the table of all
//	RemoteIdentityWatcher,         store.Watch feeding [identities.Identities.Apply] (package
//	WatchRemoteIdentities          clustermesh); WatchRemoteKVStore for an Allocator
package allocator
