// Package store keeps what a reader knows of a key family: the keys below one
// kvstore prefix, each with the value in force, and the position up to which
// they are known.
//
// It has two halves. [Set] is the pure core: it takes keys and values in any
// order of lists and events and says what changed. It owns the only set of
// keys there is: relists, sweeps, counts and drains all read it. [Watch] feeds
// a Set from a kvstore, resumes where it can, lists again where it must, and
// hands every batch of changes to one function.
//
// Guarantees to whoever applies the changes:
//   - changes come in the order of the kvstore, one call at a time;
//   - a key that vanished while nobody watched comes as a deletion, after the
//     upserts of the same list, and only when that list was complete;
//   - an unchanged value causes no change, however often it is listed, also
//     when another etcd with the same contents answers;
//   - a value that is refused leaves the one before in force, until a list
//     finds it refused again (wire.md §1);
//   - nothing is withdrawn because a connection was lost.
//
// [Metrics] tell how long events take from their receipt until they are visible,
// and how many are under way.
//
// Concurrency: a Set belongs to one goroutine. The methods of a Watch may be
// called by any, but Run and Drain exclude each other.
package store
