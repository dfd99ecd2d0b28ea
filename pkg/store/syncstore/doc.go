// Package syncstore writes a key family, the keys below one kvstore prefix: it makes them
// what their owner wants, and keeps them so, whatever other writers, expired leases and
// lost servers do to them. Package store reads one.
//
// A [Sync] has one prefix. Its pure core, the ledger, has one line for each name that is
// wanted or present, and compares. An [Outbox] puts the writes of all Syncs of one writer
// into transactions. [Canaries] tell readers that all keys are present, and are written
// last. An [Allowance] bounds the rate of one owner's writes, [Outbox.Grant] the space of
// all. [Metrics] show how far the Syncs are.
//
// A prefix below which each node owns some keys is a shared store: a Sync with
// Params.Shared writes the own keys, and a store.Watch with a store.Delayed reads all.
//
// # Guarantees
//
// To the owner of the keys:
//   - only what differs is written, and nothing before it is known what is present:
//     a change costs one write, a restart with equal contents one for each key
//     (for the new lease) or none without leases (Params.Unleased), a
//     restart of the kvstore with its data none;
//   - a key that is not wanted is deleted only once everything that is wanted was given;
//   - a refused write delays no other, and what was not acknowledged is tried again;
//   - a canary is never written before the keys that it is for.
//
// # Concurrency
//
// All methods may be called from any goroutine. Run and Drain of a Sync exclude each other,
// so do those of Canaries.
//
// # Design
//
// A [Sync] is given what should be there and follows the prefix like any reader. All
// Syncs of a writer share one [Outbox]. For the limits of requests a transaction counts as one, whatever is in it: 1,760 writes or 512 KiB at most,
// in groups, since etcd takes 128 parts at once (--max-txn-ops). So a take-over of
// 464,000 keys is about 300 requests: 3 s of a mirror's 100 a second. A canary is
// written after all its keys, and again when all of them had to be written again:
// what counts are the names that were not acknowledged when it was due, each once,
// so changes without end do not delay it.
//
// # Equivalents in Cilium
//
//	Cilium (pkg/kvstore/store)      here
//	Factory.NewSyncStore            New, with an Outbox for all Syncs of a writer
//	SyncStore.UpsertKey, DeleteKey  Sync.Put, Sync.Delete
//	SyncStore.Synced                Sync.Complete, and a canary (Canaries.Add)
//	WSSWithSyncedKeyOverride        the name given to Canaries.Add
//	WSSWithSourceClusterName        Params.Cluster
//	WSSWithoutLease                 Params.Unleased
//	SharedStore.UpdateLocalKeySync  Sync.Put and Sync.WaitName, with Params.Shared
//	SharedStore.DeleteLocalKey      Sync.Delete
//	SharedStore.Release             Sync.Drain, or the end of the leases
package syncstore
