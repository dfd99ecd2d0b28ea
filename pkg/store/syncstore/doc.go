// Package syncstore writes a key family, the keys below one kvstore prefix. It writes the keys that their owner
// wants, and restores them after changes by other writers, expired leases and lost servers. Package store reads
// a key family.
//
// A [Sync] has one prefix. Its pure core, the ledger, has one line for each name that is wanted or present, and
// compares the two. An [Outbox] groups the writes of all Syncs of one writer into transactions. [Canaries] show
// readers that all keys are present, and are written last. An [Allowance] bounds the rate of one owner's
// writes, [Outbox.Grant] the space of all writes. [Metrics] show the progress of the Syncs.
//
// A prefix below which each node owns some keys is a shared store: a Sync with
// Params.Shared writes the own keys, and a store.Watch with a store.Delayed reads all.
//
// # Guarantees
//
// To the owner of the keys:
//   - only differing keys are written, and nothing is written before the present keys are known: a change costs
//     one write; a restart with equal contents costs one write for each key (for the new lease), or none
//     without leases (Params.Unleased); a restart of the kvstore with its data costs none;
//   - an unwanted key is deleted only after the owner has given all wanted keys;
//   - a refused write delays no other, and a write that was not acknowledged is tried again;
//   - a canary is never written before the keys that it is for.
//
// # Concurrency
//
// All methods may be called from any goroutine. Run and Drain of a Sync exclude each other,
// so do those of Canaries.
//
// # Design
//
// A [Sync] gets the wanted keys from its owner and follows the prefix like any reader. All Syncs of a writer
// share one [Outbox]. For the limits of requests, a transaction counts as one request, with any contents. It
// has at most 1,760 writes or 512 KiB, in groups, since etcd takes 128 operations at once (--max-txn-ops). So a
// takeover of 464,000 keys takes about 300 requests: 3 s at a mirror's limit of 100 requests per second. A
// canary is written after all its keys, and again when all of them had to be written again. It waits until
// each name that was pending when it was due is written once. Later changes do not delay it.
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
