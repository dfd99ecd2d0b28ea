// Package identities has the identities of every cluster: which set of labels each number stands for.
//
// An [Identity] is one mapping in compact, immutable form. [Identities] owns the table: each batch
// of changes becomes one write transaction, and what was applied before and comes again writes
// nothing. What a remote cluster publishes for readers are mappings. They are never allocated,
// refreshed or released from here, and the same labels have another number in each cluster (wire.md
// §1.6, §4.6). Package allocator gives numbers to those of the own cluster.
//
// Concurrency: Apply may be called by several goroutines, transactions queue.
// Readers take snapshots of the table and never wait. Nothing here can fail: a
// mapping that is not acceptable was refused when it was decoded.
package identities
