// Package view is everything that this program knows of the clusters, for whoever
// reads it: HTTP, a DNS server, another program.
//
//   - [View.Lookup] answers whose address this is.
//   - [View.Snapshot] is one consistent state of all tables and of the cache of
//     addresses, at one position; [View.DatedSnapshot] adds how fresh it is.
//   - [View.Changes] is one ordered stream of all changes: first the state, then each
//     change with the object before and after. [View.Stream] is the same for those who
//     filter, or who write to somebody slow.
//   - [View.WaitReady] waits until the clusters are visible.
//
// # The stream
//
// All changes of all kinds have one order, and the number of a change is its position.
// A snapshot at a position shows exactly what the changes up to there have made.
// The token of an event names its position: a stream that is opened with it goes on
// there. The newest changes are kept in a ring. A token that is older than the ring, or
// that another process gave, is answered with [Reset] and the whole state. A reader that
// falls behind further than the ring is sent what differs between two snapshots, the
// newest version of each object once, so a steady reader always gets through.
//
// # Freshness
//
// Objects do not carry their age. [Snapshot.Freshness] says for each cluster until when
// what the snapshot shows of some key families is proved to equal the remote.
//
// # Concurrency
//
// A [View] may be used by any number of goroutines. One of them runs [View.Run], which
// takes changes into the ring; without it, changes are taken in only when somebody
// reads. A [Snapshot] does not change and may be shared. A [Stream] belongs to one
// goroutine. Objects are shared and must not be changed. Nothing here fails but the
// making of a view, and the waits whose context ends.
package view
