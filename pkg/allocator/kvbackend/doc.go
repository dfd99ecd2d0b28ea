// Package kvbackend keeps the mappings, node references and locks of an
// allocator in a kvstore (wire.md §5, and §1.6 for identities):
//
//	BASE/id/ID                  the key           no lease
//	BASE/value/KEY/NODE         the ID, decimal   the writer's lease
//	BASE/locks/KEY/LEASE        empty             the lease of locks
//	BASE/locks/id/ID/LEASE      the same, for garbage collection
//
// KEY is the key's text with every run of slashes made one, since paths cannot say more. So the
// path of a reference or a lock may be shared by keys that differ in such runs alone, and it may
// begin the path of another key's. Here the text in the mapping decides, never a path: a reference
// counts for a key only when nothing but the node follows, and when the mapping of the number in it
// says exactly that key. Keys that share a path share a lock, which is harmless, and one node's
// reference, of which the later writer's stands; so one node cannot hold both for long, a weakness
// of the format.
//
// Concurrency: a [Backend] may be used by any number of goroutines.
//
// Failure: errors are those of the kvstore, wrapped with what was being done. An entry that cannot
// be read is logged once, counted and skipped, in garbage collection as in reading. An unused
// mapping of a number of ours whose key cannot be read is collected as any other.
//
// # Design
//
// No number is handed out before the watch has caught up. An allocator gets the lock of the key,
// looks at the references, and, when there is none, waits until its watch has reached the revision
// at which the lock was created (store.Watch.Reach). Only then is a key without a mapping known to
// have none. The tests prove it on the whole history of an etcd: at no revision, whatever failed or
// died, had a key two numbers.
package kvbackend
