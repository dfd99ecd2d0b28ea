// Package identities has a table of the identities of all clusters: the labels that each number stands for.
//
// An [Identity] is one mapping in compact, immutable form. [Identities] owns the table. Each batch of changes becomes
// one write transaction, and changes that were applied before write nothing. Remote clusters publish mappings for
// readers. This package never allocates, refreshes or releases them, and the same labels have another number in each
// cluster (wire.md §1.6, §4.6). Package allocator allocates the numbers of the own cluster.
//
// Concurrency: Apply may be called by several goroutines; their transactions queue. Readers take snapshots of the
// table and never wait. Apply cannot fail: a mapping that is not acceptable was refused when it was decoded.
package identities
