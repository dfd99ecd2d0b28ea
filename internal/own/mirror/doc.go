// Package mirror copies every remote cluster into the own cluster's kvstore, as KVStoreMesh does,
// so that the nodes of a cluster watch one etcd, nearby, instead of hundreds.
//
// For each client file there is a controller (remotecluster) as in an agent. What
// it fills are no tables but the cache prefixes of our own kvstore (wire.md §1.1):
// each key family is a [store.Watch] of the remote, which hands its changes to a
// [syncstore.Sync] of the cache. Values are copied byte for byte; none is decoded,
// kept, or judged. Names are checked: what is written is below the prefixes of its
// cluster, whatever a remote says. The remote's configuration is validated as an
// agent does it, and written with "cached" and "syncedCanaries" before anything else, and the canary of a family when it is
// copied as completely as the remote had it. A configuration whose file is gone is
// withdrawn in the order of wire.md §3.6: configuration, pause, canaries, keys.
//
// What is copied is bounded, for our own etcd is everybody's: each remote has a
// budget (pkg/budget) and a rate, and before the quota of our own etcd is reached nothing is put
// there any more, while deletions go on (room).
//
// Of all mirrors of a cluster one leads (wire.md §3.7) and writes, and each of its
// writes proves that it still does. Everything that a term has learnt ends with it:
// the next one compares what is there with what should be, writes what differs, and
// deletes only what a remote's complete list does not have.
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
