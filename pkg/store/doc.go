// Package store keeps what is known of a key family, the keys below one kvstore
// prefix, and keeps a key family as its owner wants it.
//
// # Reading
//
// [Set] is the pure core: it takes keys and values in any order of lists and
// events and says what changed. It owns the only set of keys there is: relists,
// sweeps, counts and drains all read it. [Watch] feeds a Set from a kvstore,
// resumes where it can, lists again where it must, and hands every batch of
// changes to one function. [Watch.Run] does so for one session, [Watch.Follow] for
// all sessions of a client that connects again by itself.
//
// Guarantees to whoever applies the changes:
//   - changes come in the order of the kvstore, one call at a time;
//   - a key that vanished while nobody watched comes as a deletion, after the
//     upserts of the same list, and only when that list was complete;
//   - an unchanged value causes no change, however often it is listed, also
//     when another etcd with the same contents answers;
//   - a value that is refused leaves the one before in force, until a list
//     finds it refused again (wire.md §1);
//   - nothing is withdrawn because a connection was lost.
//
// [Metrics] tell how long events take from their receipt until they are visible,
// and how many are under way.
//
// # Writing
//
// A [Sync] makes the keys below a prefix what its owner wants, and keeps them so,
// whatever others, the end of leases and the loss of the server do to them. Its
// pure core, the ledger, has one line for each name that is wanted or there, and
// compares. What it finds to write goes through the [Outbox] of its writer, which
// makes transactions of what all Syncs have to write. [Canaries] say to readers
// that all is there, and are written last.
//
// Guarantees to whoever owns the keys:
//   - only what differs is written, and nothing before it is known what is there:
//     a change costs one write, a restart with equal contents one for each key
//     (the lease is another one) or none without leases (SyncParams.Unleased), a
//     restart of the kvstore with its data none;
//   - a key that nobody wants is deleted only once everything that is wanted was
//     given;
//   - what a kvstore refuses holds up nothing else, and what was not acknowledged
//     is tried again;
//   - a canary is never written before the keys that it stands for.
//
// # Sharing
//
// A prefix below which each node owns some keys, such as that of nodes or of IPs
// where agents write them, is a shared store: a Sync with SyncParams.Shared writes
// the own keys, and a Watch observes all, with a [Delayed] between it and the
// tables, so that the keys of a node that restarts do not come and go.
//
// # Concurrency
//
// A Set belongs to one goroutine. The methods of all others may be called by any;
// Run, Drain and Forget exclude each other. One mechanism follows a prefix for a
// Watch, a Sync and Canaries: the follower, which tells a keeper what it learns.
//
// # Design
//
// In a list the value decides, not the revision. Another replica, or an etcd
// restored from a backup, has other revisions for the same contents. Equal values
// cause no event. A refused value is counted by reason, and one key of each
// resource is shown with what is wrong with it.
//
// A position is proved before it is resumed. A server that was wiped or restored
// under its old token has its old cluster ID, and in time it overtakes every
// position. So one request asks what it had at the position: the key written last,
// and the number of keys. What differs, or is compacted, is listed again.
//
// Freshness is proved. A linearizable read gives a revision; a source equals the
// remote as of the time before that read once it has applied everything up to it.
// Otherwise its stream is asked for progress (kvstore.md §2.3). Copies are stale
// after half a minute without proof, or three probes where the size of the own
// cluster stretches these.
//
// Only what differs is written. A [Sync] is given what should be there and follows
// the prefix like any reader; its ledger, a pure core, says what is to be written.
// A change costs one write, a take-over one for each key, for the lease. All Syncs
// of a writer share one [Outbox], which makes transactions of what they have; what
// the kvstore refuses delays nothing else. For the limits of requests a
// transaction counts as one, whatever is in it: 1,760 writes or 512 KiB at most,
// in groups, since etcd takes 128 parts at once (--max-txn-ops). So a take-over of
// 464,000 keys is about 300 requests: 3 s of a mirror's 100 a second. A canary is
// written after all its keys, and again when all of them had to be written again:
// what counts are the names that were not acknowledged when it was due, each once,
// so changes without end do not delay it.
//
// # Names
//
// What Cilium calls these things, and where they are here:
//
//	Observer (OnUpdate, OnDelete)        the function that a Watch hands its changes to
//	WatchStore, RestartableWatchStore    Watch; it lists again and drains by itself
//	WatchStore.Watch(ctx, backend, …)    Watch.Run in a session, Watch.Follow across sessions
//	WatchStore.Synced, NumEntries        Watch.Status
//	WatchStore.Drain                     Watch.Drain
//	RWSWithOnSyncCallback                Watch.Status (synced), Watch.Reach
//	RWSWithEntriesMetric                 Metrics, and the counts of Watch.Status
//	KVPair, Key, KeyCreator              Raw; Kind, whose Decode makes the objects
//	WatchStoreManager, Register          package remotecluster: sources wait for their canaries
//	SyncStore, NewWorkqueueSyncStore     Sync
//	UpsertKey, DeleteKey                 Sync.Put, Sync.Delete
//	SyncStore.Synced                     Sync.Complete, then Canaries
//	WSSWithSyncedKeyOverride             Canaries.Add
//	WSSWithRateLimiter, work queue       Outbox: transactions instead of one write for each key
//	SharedStore, JoinSharedStore         Sync with SyncParams.Shared for the own keys, and Watch
//	UpdateLocalKeySync, DeleteLocalKey   Sync.Put and Sync.WaitName, Sync.Delete
//	SharedKeyDeleteDelay                 Delayed
//	SharedStore.SharedKeysMap            the table that the changes are applied to
package store
