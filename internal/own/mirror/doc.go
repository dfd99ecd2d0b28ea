// Package mirror copies every remote cluster into the own cluster's kvstore, as KVStoreMesh does,
// so that the nodes of a cluster watch one etcd, nearby, instead of hundreds.
//
// For each client file there is a controller (remotecluster) as in an agent. It fills the cache prefixes of our own
// kvstore (wire.md §1.1), not tables: each key family is a [store.Watch] of the remote, which hands its changes to a
// [syncstore.Sync] of the cache. Values are copied byte for byte; none is decoded, kept, or judged. Names are checked:
// every key is written below the prefixes of its cluster, and no remote can change that. The remote's configuration is
// validated as an agent does it, and written with "cached" and "syncedCanaries" before anything else, and the canary of
// a family once its copy is as complete as the remote. A configuration whose file no longer exists is withdrawn in the
// order of wire.md §3.6: configuration, pause, canaries, keys.
//
// The copies are bounded, because all of the own cluster uses our own etcd: each remote has a budget (pkg/budget) and a
// rate, and before our own etcd reaches its quota the mirror stops putting entries there, while deletions continue
// (room).
//
// Of all mirrors of a cluster one leads (wire.md §3.7) and writes, and each of its writes proves that it still does.
// The knowledge of a term ends with it: the next one compares the existing keys with the wanted ones, writes the
// differences, and deletes only keys that a remote's complete list does not have.
//
// Concurrency: [Mirror.Run] owns every goroutine. All other methods may be called
// by any, at any time.
//
// # Design
//
// A copy keeps no values. A value goes from the watch of the remote to the Sync of
// the copy and is forgotten. When it has to be written again, because it was
// deleted or the own etcd was lost, the remote is asked again. A copy is as fresh
// as its remote was when the last of its entries was written.
package mirror
