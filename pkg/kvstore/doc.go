// Package kvstore is the one place that talks to etcd. It reads: single keys,
// lists in pages at one revision, streams of events from a position, and how
// far the server has come. Everything above it sees a [Client].
//
// A client is a value and not global; several live side by side. [Connect]
// makes one of a [Config], which [LoadConfig] reads from a client file, and of
// [Options]. It is a session: one endpoint, one connection, one etcd whose
// cluster ID is checked in every response. [Etcd.Run] watches over it. When it
// is over its owner connects again, to the next endpoint.
//
// # Positions
//
// A [Position] is a cluster ID and a revision. A list is followed by a watch
// from the list's position: nothing is missed and nothing repeated. A stream
// ends with an error; its owner opens another one after the last position, and
// lists again after [ErrCompacted] and [ErrServerChanged]. Who keeps a copy also
// lists again when a new session is not at or after its position. Package store
// does all of this.
//
// # Concurrency
//
// All of a client may be used by any number of goroutines, a stream by one that
// receives and any that ask for progress or close. Nothing is read from the
// network before somebody wants it: a slow consumer holds up its own stream, at
// the server's cost. Nothing blocks without a deadline, and everything ends with
// its context and with Close.
//
// # Failure
//
// Errors are [*KeyError]: operation, key, what went wrong, what to do. gRPC
// reconnects by itself after a lost connection, with at most a few seconds
// between attempts; until then calls fail at once with the reason. A session is
// over when another server answers or when the watchdog's reads have failed too
// often in a row. A heartbeat that is missing degrades the status and nothing
// else.
//
// # Names
//
// What people of this field look for is found under these names (spec
// kvstore.md). Writing is not part of this package yet.
//
//	BackendOperations             Client, and Etcd for all of it
//	connected, disconnected       Etcd.WaitConnected
//	status, status-check errors   Status; Run's result; onProbe of Run
//	get, list prefix              Client.Get, Client.List
//	list and watch                Client.List and Client.Watch; store.Watch resumes them
//	close                         Client.Close
//	NewClient, Setup, Cell        Connect with Options.Config
//	ExtraOptions                  Options (Dial, ClusterSize, ...)
//	bootstrap complete            Etcd.BootstrapComplete
//	Value, KeyValueEvent          KeyValue, Event in a Batch
//	EventType                     EventType; modify is a put; list done is the return of List
//	Watcher                       Stream
//	Hint                          Hint
//	Trace, EnableTracing          Options.Log at debug level
//	GetScopeFromKey               wire.ScopeFromKey
//	StateToCachePrefix            wire.StateToCache
package kvstore
