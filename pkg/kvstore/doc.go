// Package kvstore is the contract of a key-value store with revisions, such as etcd. It
// reads: single keys, lists in pages at one revision, streams of events from a position,
// and the current position of the server. It writes: keys under conditions, tied to leases,
// under locks. All packages above it use a [Client] or a [Writer].
//
// Package etcd is the engine for etcd, and package memory is an engine in memory for
// tests. Package clientfile reads etcd client files. Package hint maps an error to its finding
// and to advice for the operator.
//
// # Engines
//
// An [Engine] reads, makes transactions ([Transaction]) and grants leases. [NewWriter] adds
// the part that all engines share: conditions, leased keys, locks and observers. So an engine
// can be written outside this module; it has to pass kvtest.Run. [NewDurable] makes a Writer
// that outlives its sessions, from any function that opens them.
//
// # Positions
//
// A [Position] is a cluster ID and a revision. A watch from a list's position misses nothing
// and repeats nothing. A stream ends with an error; its owner opens another one after the last
// position, and lists again after [ErrCompacted] and [ErrServerChanged], or when a new session
// is not at or after its position, or has another history (Recall). Package store does all of this.
//
// # Writing
//
// A write is one transaction, compiled by a pure function from its conditions ([Option]). A
// write that returns an error may have been made nevertheless; a caller that must know reads the key.
//
// Leased keys disappear some time after their writer is gone. Their leases belong to [Leases],
// which its owner passes from one session to the next: the leases continue while the same etcd
// (by its cluster ID) answers, so a lost connection deletes no key. When a lease has ended, the
// observer of each key is notified once ([Writer.OnLeaseExpired]), and puts the key again under a
// new lease. Closing a session revokes the leases of its locks, and lets those of keys expire.
//
// A lock is lost when its lease ends, and its holder cannot detect that in time. So every read and
// write that relies on a lock proves it ([Holding]), and fails with [ErrLockLeaseExpired] when the
// lock is lost. [Lock.Lost] notifies the holder once the loss is known. [Lead] elects a leader with a lock.
//
// # Concurrency
//
// Any number of goroutines may use a client. One goroutine at a time receives from a stream; any
// may request progress or close it. Nothing is read from the network before the consumer asks for
// it: a slow consumer delays its own stream, at the server's cost. No call blocks without a
// deadline, and every call ends with its context and with Close.
//
// # Failure
//
// Errors are [*KeyError]: operation, key, cause, advice. Answers are checked before they are used;
// a violation ([ErrProtocol]) ends the session. Another server also ends it, and so do too many
// failed reads of the watchdog in a row, unless kilobytes arrive meanwhile: then a slow link
// delays the answer. A missing heartbeat only degrades the status.
//
// # Names
//
// The left column has the usual terms, and the right column the names in this package (spec kvstore.md).
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
//	create-only                   Put with IfAbsent; Result.Done reports the same
//	delete, delete prefix         Writer.Delete, Writer.DeletePrefix
//	... if locked                 the option Holding, of writes, Get and List
//	lease (an argument there)     the option Leased; Write.Unleased within an Update
//	lock, KVLocker, LockPath      Writer.Lock gives a Lock
//	Comparator                    Holding; Lock.Key and Lock.Revision for others
//	RunLockGC, stale locks        Run reports locks held for longer than WriterOptions.StaleLock
//	lease-expired observer        Writer.OnLeaseExpired; Writer.Owns
//	session, lock session         Leases; ErrLockLeaseExpired
//	BackendOperationsUserMgmt     etcd.Session.EnsureUser, RemoveUser
//	close                         Client.Close; Leases.Revoke deletes the leased keys
//	encode/decode of keys         none: keys are text as they are (package wire)
//	NewClient, Setup, Cell        etcd.Connect with etcd.Options.Config
//	NewInMemoryClient             memory.New
//	ExtraOptions                  etcd.Options (Dial, DialOptions, ClusterSize, NoLockQuorumCheck,
//	                              NoEndpointChecks)
//	names of options              etcd.OptionAddress and the others
//	bootstrap complete            Session.BootstrapComplete
//	Value, KeyValueEvent          KeyValue, Event in a Batch
//	session ID of a value         KeyValue.Lease
//	EventType                     EventType; create and modify are puts, which Event.Created distinguishes; list done is the return of List
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
