// Package memory is an engine of a kvstore in memory, for tests and examples. It behaves
// like etcd: revisions, history, compaction, leases and locks, and the replacement by another
// server. Tests can act as other clients or as an operator of the server, and can make it fail
// ([Fault]). The conformance suite (kvtest) checks that it behaves like etcd.
package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// Fault is called before each operation of a [Store]. If it returns an error, the operation fails with it and is not
// executed, unless the error is made by [Afterwards] (it was executed), [Delayed] (its answer comes later), or [Stray] (it
// is executed later). A fault may also block. Operations are "get", "list" (the first page), "page" (each further page),
// "recall", "watch", "recv", "progress", "head", "probe"; "put", "delete", "delete prefix",
// "update"; "lock" (several for each lock), "unlock"; "grant lease" and "keep leases alive". No
// mutex is held during the call.
type Fault func(ctx context.Context, op, key string) error

// Liar changes an answer before the session gets it, as a hostile server can: a *[kvstore.Page] or *[kvstore.KeyValue] of
// a read, a *[kvstore.Batch] of a stream, or a *[kvstore.Past]. It must keep the rules of [kvstore.Client] that an engine
// checks: only keys that were asked for, in their order, no empty page, and revisions up to that of the answer. No mutex is
// held during the call.
type Liar func(key string, answer any)

// Store is a kvstore in memory. It is the server, with methods to act as other clients and as an
// operator, and also one session with the server: a [kvstore.Writer] that began with [New] or
// [Store.Connect]. All methods may be called from any number of goroutines.
type Store struct {
	*kvstore.EngineWriter

	addr    *address
	route   *route // nil: the common one
	closing sync.Once

	// Guarded by addr.mu.
	pinned  uint64 // the cluster ID that the session began with
	highest int64  // the highest revision that this session has seen
	over    error  // why the session is over; never reset
	status  kvstore.Status
}

var _ kvstore.Session = (*Store)(nil)

// address is the address of a server. It outlives the server.
type address struct {
	mu       sync.Mutex
	wake     chan struct{} // closed and replaced at each change of anything below
	store    *contents     // the server that is here now
	route                  // of all sessions
	recorder Recorder
	pageSize int
	fragment int           // events in a part of a batch; 0: batches have no parts
	interval time.Duration // between two probes of Run
	ttl      time.Duration // of leases
	lockTTL  time.Duration // of those of locks
	expire   bool          // leases end because of time
	nextID   uint64

	nextLease int64 // ID of the latest lease
}

// route is a way to a server. The mutex of the address guards it.
type route struct {
	// broken is how often all connections were cut, and breakErr the reason of the last time.
	broken   int
	breakErr error
	fault    Fault
	liar     Liar
}

// Recorder is called with the changes of each revision, in order, and before anyone else sees them. No changes: another
// server is here now, whose contents follow. It must not call the [Store].
type Recorder func(at kvstore.Position, changes []kvstore.Event)

// contents is the contents of one server.
type contents struct {
	record    Recorder
	id        uint64
	rev       int64
	compacted int64
	items     map[string]kvstore.KeyValue
	created   map[string]int64 // the revision at which each key of items was created
	leases    map[int64]*lease // those that have not ended
	// history is ascending by ModRevision. It has all events from the revision compacted on,
	// and of the earlier events the last put of each key that still existed at the compaction.
	history []kvstore.Event
}

// New starts an empty server and connects to it.
func New() *Store {
	a := &address{wake: make(chan struct{}), pageSize: 100, interval: 100 * time.Millisecond, ttl: LeaseTTL, lockTTL: LeaseTTL, nextID: 0xc1}
	a.install(a.nextID)
	return (&Store{addr: a}).Connect()
}

// Connect begins a new session with the current server.
func (m *Store) Connect() *Store { return m.ConnectWith(nil) }

// ConnectWith begins a new session whose keys are tied to these leases; nil: to leases of its own.
func (m *Store) ConnectWith(leases *kvstore.Leases) *Store {
	n := &Store{addr: m.addr, route: m.route}
	var ttl, lockTTL time.Duration
	m.addr.locked(func(a *address) { n.start(a); ttl, lockTTL = a.ttl, a.lockTTL })
	n.EngineWriter = kvstore.NewWriter(n, kvstore.WriterOptions{LeaseTTL: ttl, LockTTL: lockTTL, Leases: leases, Hint: hint.Text})
	n.Join(n.pinned)
	return n
}

// Route begins a session over a route of its own to the same server. [Store.SetFault] and [Store.Break] of it are about the
// sessions that it has begun, and not about the others; those of a session without a route are about all.
func (m *Store) Route() *Store { return (&Store{addr: m.addr, route: new(route)}).Connect() }

// way is the part of the network that faults of this session are about.
func (m *Store) way() *route {
	if m.route != nil {
		return m.route
	}
	return &m.addr.route
}

func (m *Store) start(a *address) {
	m.pinned, m.highest = a.store.id, a.store.rev
	now := time.Now()
	m.status = kvstore.Status{
		Endpoint: "memory", EtcdClusterID: m.pinned, Connected: true, Quorum: true,
		ConnectedSince: now, LastSuccess: now, Head: kvstore.Position{ClusterID: m.pinned, Revision: m.highest},
		Server: kvstore.ServerStatus{Version: "memory", AskedAt: now},
	}
}

// install puts an empty server at the address. Open streams break.
func (a *address) install(id uint64) {
	a.serve(&contents{
		id: id, rev: 1, items: make(map[string]kvstore.KeyValue), created: make(map[string]int64), leases: make(map[int64]*lease),
	})
}

// serve puts a server with these contents at the address. Open streams break.
func (a *address) serve(s *contents) {
	a.store = s
	s.record = a.recorder
	if s.recordChanges(nil); len(s.items) > 0 {
		s.recordChanges(slices.DeleteFunc(slices.Clone(s.history), func(e kvstore.Event) bool {
			return s.items[string(e.Key)].ModRevision != e.ModRevision
		}))
	}
	a.cut(errBroken)
	a.changed()
}

func (s *contents) recordChanges(changes []kvstore.Event) {
	if s.record != nil {
		s.record(kvstore.Position{ClusterID: s.id, Revision: s.rev}, changes)
	}
}

func (a *address) locked(f func(*address)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// changed wakes up all waiting goroutines. The caller holds the mutex.
func (a *address) changed() {
	close(a.wake)
	a.wake = make(chan struct{})
}

// Set writes a key, as another client, and returns the position of the write.
func (m *Store) Set(key, value string) kvstore.Position {
	return m.Write(kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(key), Value: []byte(value)}})
}

// Unset deletes a key, as another client. Deleting an absent key changes nothing, not even the
// revision.
func (m *Store) Unset(key string) kvstore.Position {
	return m.Write(deletion(key))
}

// Has reports whether the server has a key, without an operation of the session.
func (m *Store) Has(key string) bool {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	_, is := m.addr.store.items[key]
	return is
}

func deletion(key string) kvstore.Event {
	return kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(key)}}
}

// Write makes several changes at one revision, as a transaction does, and returns the
// position. It uses the type, key, value and lease of each event.
func (m *Store) Write(events ...kvstore.Event) kvstore.Position {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store.write(events)
	a.changed()
	return kvstore.Position{ClusterID: a.store.id, Revision: a.store.rev}
}

func (s *contents) write(events []kvstore.Event) {
	rev, before := s.rev+1, len(s.history)
	for _, e := range events {
		key := string(e.Key)
		if e.Type == kvstore.EventDelete {
			if _, ok := s.items[key]; !ok {
				continue
			}
			delete(s.items, key)
			delete(s.created, key)
			e.Value, e.Lease = nil, 0
		}
		e.Created = false
		e.Key, e.Value, e.ModRevision = slices.Clone(e.Key), slices.Clone(e.Value), rev
		if e.Type == kvstore.EventPut {
			if _, ok := s.items[key]; !ok {
				s.created[key] = rev
				e.Created = true
			}
			s.items[key] = e.KeyValue
		}
		s.history = append(s.history, e)
		s.rev = rev
	}
	if len(s.history) > before {
		s.recordChanges(s.history[before:])
	}
}

// Compact drops the history before the current revision. It does not affect streams that have
// already delivered all events.
func (m *Store) Compact() kvstore.Position {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.store
	s.compacted = s.rev
	s.history = slices.DeleteFunc(s.history, func(e kvstore.Event) bool {
		return e.ModRevision < s.compacted && s.items[string(e.Key)].ModRevision != e.ModRevision
	})
	a.changed()
	return kvstore.Position{ClusterID: s.id, Revision: s.rev}
}

// Replace puts another, empty server behind the address. Open streams break; the sessions of the
// old server end with [kvstore.ErrServerChanged] at their next operation.
func (m *Store) Replace() {
	m.addr.locked(func(a *address) {
		a.nextID++
		a.install(a.nextID)
	})
}

// Backup is a copy of the contents of a server.
type Backup struct{ contents contents }

// Backup returns a copy of the server's contents.
func (m *Store) Backup() *Backup {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	return &Backup{m.addr.store.clone()}
}

// Restore gives the server the contents of a backup, with its revision, cluster ID and leases, whose time begins again. Open
// streams break, and sessions that have seen a later revision end with [kvstore.ErrServerChanged].
func (m *Store) Restore(b *Backup) {
	m.addr.locked(func(a *address) {
		s := b.contents.clone()
		for id, l := range s.leases {
			s.leases[id] = a.newLease(id, l.ttl)
		}
		a.serve(&s)
	})
}

func (s *contents) clone() contents {
	c := *s
	c.items, c.created, c.leases, c.history = maps.Clone(s.items), maps.Clone(s.created), maps.Clone(s.leases), slices.Clone(s.history)
	return c
}

// SetRecorder installs a recorder; nil removes it. It is not called for what the server has already.
func (m *Store) SetRecorder(r Recorder) {
	m.addr.locked(func(a *address) { a.recorder, a.store.record = r, r })
}

// Wipe empties the server, which starts its revisions again with the same cluster ID, like
// an etcd that lost its data and kept its token. Open streams break.
func (m *Store) Wipe() { m.addr.locked(func(a *address) { a.install(a.store.id) }) }

// Break ends all open streams with the error; nil: the connection was lost. The sessions continue.
func (m *Store) Break(err error) {
	m.addr.locked(func(a *address) {
		m.way().cut(cmp.Or(err, errBroken))
		a.changed()
	})
}

func (r *route) cut(err error) {
	r.broken++
	r.breakErr = err
}

// SetFault installs a fault for all sessions, or those of the route; nil removes it. A fault of the route is called after
// one of all sessions, unless that returns an error.
func (m *Store) SetFault(f Fault) { m.addr.locked(func(*address) { m.way().fault = f }) }

// SetLiar installs a liar, for all sessions or those of the route; nil removes it. One of the route is preferred.
func (m *Store) SetLiar(l Liar) { m.addr.locked(func(*address) { m.way().liar = l }) }

// lie lets the liar change an answer, if there is one.
func (m *Store) lie(key string, answer any) {
	m.addr.mu.Lock()
	liar := m.addr.liar
	if m.route != nil && m.route.liar != nil {
		liar = m.route.liar
	}
	m.addr.mu.Unlock()
	if liar != nil {
		liar(key, answer)
	}
}

// SetPageSize sets the maximum number of keys in a page of a list; 100 at first.
func (m *Store) SetPageSize(n int) { m.addr.locked(func(a *address) { a.pageSize = max(n, 1) }) }

// SetFragmentSize sets the maximum number of events in a part of a batch ([kvstore.Batch.Partial]); 0, as at first: batches
// have no parts.
func (m *Store) SetFragmentSize(n int) { m.addr.locked(func(a *address) { a.fragment = n }) }

// SetProbeInterval sets the time between two probes of [Store.Run]; 100 ms at first.
func (m *Store) SetProbeInterval(d time.Duration) { m.addr.locked(func(a *address) { a.interval = d }) }

// Position returns the server's position, without an operation of the session.
func (m *Store) Position() kvstore.Position {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	return kvstore.Position{ClusterID: m.addr.store.id, Revision: m.addr.store.rev}
}
