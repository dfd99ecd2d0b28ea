// Package store reads a key family, the keys below one kvstore prefix, and reports its changes. Package
// syncstore writes a key family.
//
// [Set] is the pure core: it takes keys and values in any order of lists and events and returns what changed.
// It owns the only set of keys; relists, sweeps, counts and drains all read it. [Watch] feeds a Set from a
// kvstore, resumes where this is proved to be safe, lists again otherwise, and hands every batch of changes to
// one function. [Watch.Run] does so for one session, [Watch.Follow] for all sessions of a client that connects
// again by itself. [Delayed] holds deletions back for a while. [Limits] bound the cost of a cluster, [Turns]
// the number of lists and batches that run at once. [Metrics] measure how long events take from their receipt
// until they are visible, and how many are being applied.
//
// # Guarantees
//
// To the function that applies the changes:
//   - changes come in the order of the kvstore, one call at a time;
//   - a key that was deleted while nothing was followed is reported as a deletion, after the upserts of the
//     same list, and only when that list was complete;
//   - an unchanged value causes no change, however often it is listed, also
//     when another etcd with the same contents answers;
//   - a refused value leaves the previous one in force, until a list finds it refused again (wire.md §1);
//   - nothing is withdrawn because a connection was lost.
//
// # Concurrency
//
// A Set belongs to one goroutine. The methods of all other types may be called from any.
// Run, Follow, Recheck and Drain of a Watch exclude each other.
//
// # Design
//
// In a list the value decides, not the revision. Another replica, or an etcd restored from a backup, has other
// revisions for the same contents. Equal values cause no event. A refused value is counted by reason, and one
// refused key of each resource is shown with its error.
//
// A position is proved before a stream resumes from it. A server that was wiped or restored under its old token
// has its old cluster ID, and in time its revision exceeds every position. So one request reads its state at
// the position: up to 64 keys with their revisions and values, from the key written last on, and the number of
// keys. If the state differs, or the position is compacted, the keys are listed again.
//
// Freshness is proved too. A linearizable read returns a revision. Once a source has applied everything up to
// this revision, it equals the remote as of the time before the read. Until then the source requests the
// progress of its stream (kvstore.md §2.3). Copies are stale after half a minute without proof, or after three
// probes where the size of the own cluster makes the interval of probes longer.
//
// # Equivalents in Cilium
//
//	Cilium (pkg/kvstore/store)      here
//	WatchStore, restartable or not  Watch, always restartable
//	WatchStore.Watch                Watch.Run, Watch.Follow
//	WatchStore.Drain, Synced        Watch.Drain, Status.Synced
//	Observer.OnUpdate, OnDelete     Kind.Apply, with batches of Change
//	KeyCreator, Key.Unmarshal       Kind.Decode
//	RWSWithOnSyncCallback           Kind.Listed
//	SharedStore, keys of all nodes  Watch, with Delayed in front of the tables
//	SharedStore, own keys           syncstore.Sync
//	SyncStore                       syncstore.Sync
package store
