// Package kvbackend keeps the mappings, node references and locks of an
// allocator in a kvstore (wire.md §5, and §1.6 for identities):
//
//	BASE/id/ID                  the key           no lease
//	BASE/value/KEY/NODE         the ID, decimal   the writer's lease
//	BASE/locks/KEY/LEASE        empty             the lease of locks
//	BASE/locks/id/ID/LEASE      the same, for garbage collection
//
// KEY is the key's text, with each run of slashes reduced to one slash, since paths cannot contain such runs. So keys
// that differ only in such runs share the path of a reference or a lock, and this path may be the beginning of
// another key's path. Therefore the text in the mapping decides, never a path. A reference counts for a key only if
// nothing but the node follows the key in its path, and if the mapping of the ID in it has exactly that key. Keys
// that share a path share a lock, which is harmless. They also share one node's reference, of which the last write
// stays, so one node cannot hold both for long: a weakness of the format.
//
// Concurrency: a [Backend] may be used by any number of goroutines.
//
// Failure: errors are those of the kvstore, wrapped with the operation that failed. An entry that cannot be read is
// logged once, counted and skipped, in garbage collection as in reading. An unused mapping of an ID of the own range
// whose key cannot be read is collected like any other.
//
// # Design
//
// No ID is handed out before the watch has caught up. An allocator gets the lock of the key and looks at the
// references. When there is none, it waits until its watch has reached the revision at which the lock was created
// (store.Watch.Reach). Only then is it known that a key without a seen mapping has none. The tests prove it on the
// whole history of an etcd, with failures and crashes: at no revision did a key have two IDs.
package kvbackend
