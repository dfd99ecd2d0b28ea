// Package kvstore is the contract of a key-value store with revisions, as etcd is one. It
// reads: single keys, lists in pages at one revision, streams of events from a position,
// and how far the server has come. It writes: keys under conditions, tied to leases,
// under locks. Everything above it sees a [Client], or a [Writer].
//
// Package etcd is the engine that talks to etcd, package memory one in memory for tests;
// package clientfile reads etcd client files, and package hint says of an error which
// finding it is and what to do.
//
// # Engines
//
// An [Engine] reads, makes transactions ([Transaction]) and grants leases. [NewWriter]
// adds what is the same for all engines: conditions, leased keys, locks and observers. So
// an engine can be written anywhere; it passes kvtest.Run. [NewDurable] makes a Writer
// that outlives its sessions, of any function that opens them.
//
// # Positions
//
// A [Position] is a cluster ID and a revision. A watch from a list's position misses nothing
// and repeats nothing. A stream ends with an error; its owner opens another one after the last
// position, and lists again after [ErrCompacted] and [ErrServerChanged], or when a new session
// is not at or after its position. Package store does all of this.
//
// # Writing
//
// A write is one transaction, compiled by a pure function from its conditions ([Option]). One
// that fails may have been made nevertheless; a caller that must know asks again.
//
// Leased keys vanish when their writer is gone. Their leases belong to [Leases], which its owner
// hands from one session to the next: while the same etcd answers (by its cluster ID) they go
// on, so a lost connection withdraws nothing. When a lease has ended, the observer of each key is
// notified once ([Writer.OnLeaseExpired]), and puts it back under a new one. Closing a session
// revokes the leases of its locks, and leaves those of keys to run out.
//
// A lock is lost when its lease ends, and nobody can know in time. So what relies on it is
// written, and read, with it ([Holding]), and fails with [ErrLockLeaseExpired] when it is lost.
// [Lock.Lost] notifies the holder once that is known. [Lead] elects a leader by a lock.
//
// # Concurrency
//
// All of a client may be used by any number of goroutines, a stream by one that receives and any
// that ask for progress or close. Nothing is read from the network before somebody wants it: a
// slow consumer delays its own stream, at the server's cost. Nothing blocks without a deadline,
// and everything ends with its context and with Close.
//
// # Failure
//
// Errors are [*KeyError]: operation, key, what went wrong, what to do. Answers are checked before
// they are used; a violation ([ErrProtocol]) ends the session. So does another server, and too
// many failed reads of the watchdog in a row, unless kilobytes come in meanwhile: then a slow
// link delays the answer. A missing heartbeat degrades the status and nothing else.
//
// # Names
//
// What people of this field look for is found under these names (spec kvstore.md).
//
//	BackendOperations             Client, Writer, and etcd.Session for all of it
//	connected, disconnected       Session.WaitConnected, Durable.WaitConnected and WaitDisconnected
//	status, status-check errors   Status; Run's result; onProbe of Run, Durable.OnProbe
//	get, list prefix              Client.Get, Client.List
//	list and watch                Client.List and Client.Watch; store.Watch resumes them, in a
//	                              session (Run) or across those of a Durable (Follow)
//	update                        Writer.Put
//	many at once                  Writer.Update
//	update-if-different           Put with IfChanged; Result.Done reports whether it wrote
//	create-only                   Put with IfAbsent; likewise
//	delete, delete prefix         Writer.Delete, Writer.DeletePrefix
//	... if locked                 the option Holding, of writes, Get and List
//	lease (an argument there)     the option Leased; Write.Unleased within an Update
//	lock, KVLocker, LockPath      Writer.Lock gives a Lock
//	Comparator                    Holding; Lock.Key and Lock.Revision for others
//	RunLockGC, stale locks        Run reports locks held for longer than WriterOptions.StaleLock
//	lease-expired observer        Writer.OnLeaseExpired; Writer.Owns
//	session, lock session         Leases; ErrLockLeaseExpired
//	BackendOperationsUserMgmt     etcd.Session.EnsureUser, RemoveUser
//	close                         Client.Close; Leases.Revoke withdraws what was leased
//	encode/decode of keys         none: keys are text as they are (package wire)
//	NewClient, Setup, Cell        etcd.Connect with etcd.Options.Config
//	NewInMemoryClient             memory.New
//	ExtraOptions                  etcd.Options (Dial, DialOptions, ClusterSize, NoLockQuorumCheck,
//	                              NoEndpointChecks)
//	names of options              etcd.OptionAddress and the others
//	bootstrap complete            Session.BootstrapComplete
//	Value, KeyValueEvent          KeyValue, Event in a Batch
//	session ID of a value         KeyValue.Lease
//	EventType                     EventType; create and modify are puts, which Event.Created tells apart; list done is the return of List
//	Watcher                       Stream
//	Hint                          hint.Text; KeyError.Hint
//	EtcdDbg                       package troubleshoot, with clientfile.Parse and etcd.Reach
//	Trace, EnableTracing          etcd.Options.Log at debug level, with etcd.Options.Traces
//	BaseKeyPrefix and the other   the same; package wire builds the keys
//	prefixes, HeartbeatPath,
//	InitLockPath
//	GetScopeFromKey,              the same
//	StateToCachePrefix
package kvstore
