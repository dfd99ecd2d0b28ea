// Package view is the merged view of all clusters, for its readers: the HTTP API, a DNS server, another program.
//
//   - [View.Lookup] returns the cluster that claims an address, with details.
//   - [View.Snapshot] is one consistent state of all tables and of the cache of
//     addresses, at one position; [View.DatedSnapshot] adds how fresh it is.
//   - [View.Changes] is one ordered stream of all changes: first the state, then each
//     change with the object before and after. [View.Stream] is the same for readers that
//     filter, or that send to slow clients.
//   - [View.WaitReady] waits until the clusters are visible.
//
// # The stream
//
// All changes of all kinds have one order, and the number of a change is its position. A snapshot at a position shows
// exactly the result of the changes up to that position. The token of an event names its position: a stream that is
// opened with the token continues there. The newest changes are kept in a ring. For a token that is older than the
// ring, or that another process gave, the stream sends [Reset] and the whole state. A reader that falls behind further
// than the ring is sent the differences between two snapshots, the newest version of each object once, so a steady
// reader always catches up.
//
// # Freshness
//
// Objects do not carry their age. [Snapshot.Freshness] returns for each cluster until when the data of some key
// families in the snapshot is proved to equal the remote.
//
// # Concurrency
//
// A [View] may be used by any number of goroutines. One of them runs [View.Run], which takes changes into the ring;
// without it, changes are taken in only when a reader reads. A [Snapshot] does not change and may be shared. A [Stream]
// belongs to one goroutine. Objects are shared and must not be changed. Errors come only from making a view, from waits
// whose context ends, and from streams.
package view
