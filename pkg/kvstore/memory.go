package kvstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is called before each operation of a [Memory] and decides its fate: it
// may return an error, which the operation then ends with, or block until the
// context ends or the test wants it to go on. With an error made by [Afterwards]
// the operation is done, and fails nevertheless. Operations are "get", "list" (the
// first page), "page" (a further one), "recall", "watch", "recv", "progress",
// "head", "probe"; "put", "delete", "delete prefix", "update"; "lock" (several for each),
// "unlock"; "grant lease" and "keep leases alive". It is called without any lock.
type Fault func(ctx context.Context, op, key string) error

// Memory is a kvstore in memory: at once the server, with methods to do what
// others do to it, and a [Writer] of it, one session that began with [NewMemory]
// or [Memory.Connect]. It behaves as an etcd does, history, compaction and
// replacement by another server included, and can be told to fail. All methods
// may be called from any number of goroutines.
type Memory struct {
	*writing

	addr *memAddress

	// Guarded by addr.mu.
	pinned  uint64 // the cluster ID that the session began with
	highest int64  // the highest revision that this session has seen
	over    error  // why the session is over; sticky
	status  Status
}

// memAddress is where a server can be reached: it outlives the server.
type memAddress struct {
	mu    sync.Mutex
	wake  chan struct{} // closed and replaced at each change of anything below
	store *memStore     // the server that is here now
	// broken counts how often all connections were cut, and why the last time.
	broken   int
	breakErr error
	fault    Fault
	pageSize int
	interval time.Duration // between two probes of Run
	nextID   uint64
	// nextLease is the ID of the latest lease.
	nextLease int64
}

// memStore is the contents of one server.
type memStore struct {
	id        uint64
	rev       int64
	compacted int64
	items     map[string]KeyValue
	created   map[string]int64 // the revision at which each key of items was created
	leases    map[int64]bool   // those that have not ended
	// history is ascending by ModRevision, and complete from compacted on. From
	// before that it has what was in force then.
	history []Event
}

// NewMemory starts an empty server and connects to it.
func NewMemory() *Memory {
	a := &memAddress{wake: make(chan struct{}), pageSize: 100, interval: 100 * time.Millisecond, nextID: 0xc1}
	a.install(a.nextID)
	return (&Memory{addr: a}).Connect()
}

// Connect begins a new session with the server that is there now.
func (m *Memory) Connect() *Memory {
	return m.ConnectWith(nil)
}

// ConnectWith begins a new session whose keys are tied to these leases; nil for
// some that end with the session.
func (m *Memory) ConnectWith(leases *Leases) *Memory {
	n := &Memory{addr: m.addr}
	m.addr.mu.Lock()
	n.start()
	m.addr.mu.Unlock()
	n.writing = newWriting(n, leases, writeOptions{
		leaseTTL: memLeaseTTL, lockTTL: memLeaseTTL, timings: DefaultTimings(), checkQuorum: true,
	})
	n.begin(n.pinned)
	return n
}

func (m *Memory) start() {
	m.pinned = m.addr.store.id
	m.highest = m.addr.store.rev
	now := time.Now()
	m.status = Status{
		Endpoint: "memory", EtcdClusterID: m.pinned, Connected: true, Quorum: true,
		ConnectedSince: now, LastSuccess: now, Head: Position{m.pinned, m.highest},
		Server:    ServerStatus{Version: "memory", AskedAt: now},
		Heartbeat: HeartbeatStatus{Seen: now},
	}
}

func (a *memAddress) install(id uint64) {
	a.store = &memStore{
		id: id, rev: 1, items: make(map[string]KeyValue), created: make(map[string]int64), leases: make(map[int64]bool),
	}
}

// changed wakes up everybody who waits. The lock is held.
func (a *memAddress) changed() {
	close(a.wake)
	a.wake = make(chan struct{})
}

// Set writes a key, as somebody else, and returns the position of the write.
func (m *Memory) Set(key, value string) Position {
	return m.Write(Event{Type: EventPut, KeyValue: KeyValue{Key: []byte(key), Value: []byte(value)}})
}

// Unset deletes a key, as somebody else. Deleting an absent one changes nothing, not even the
// revision.
func (m *Memory) Unset(key string) Position {
	return m.Write(Event{Type: EventDelete, KeyValue: KeyValue{Key: []byte(key)}})
}

// UnsetPrefix deletes all keys that begin with prefix, at one revision.
func (m *Memory) UnsetPrefix(prefix string) Position {
	var events []Event
	m.addr.mu.Lock()
	for k := range m.addr.store.items {
		if strings.HasPrefix(k, prefix) {
			events = append(events, Event{Type: EventDelete, KeyValue: KeyValue{Key: []byte(k)}})
		}
	}
	m.addr.mu.Unlock()
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return m.Write(events...)
}

// Write makes several changes at one revision, as a transaction does, and
// returns the position. Of each event the type, key, value and lease count.
func (m *Memory) Write(events ...Event) Position {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store.write(events)
	a.changed()
	return Position{a.store.id, a.store.rev}
}

// write makes changes at one revision.
func (s *memStore) write(events []Event) {
	rev := s.rev + 1
	for _, e := range events {
		key := string(e.Key)
		if e.Type == EventDelete {
			if _, ok := s.items[key]; !ok {
				continue
			}
			delete(s.items, key)
			delete(s.created, key)
			e.Value, e.Lease = nil, 0
		}
		e.Created = false
		e.Key, e.Value, e.ModRevision = slices.Clone(e.Key), slices.Clone(e.Value), rev
		if e.Type == EventPut {
			if _, ok := s.items[key]; !ok {
				s.created[key] = rev
				e.Created = true
			}
			s.items[key] = e.KeyValue
		}
		s.history = append(s.history, e)
		s.rev = rev
	}
}

// Compact drops the history before the present revision. Streams that have
// already been given everything do not notice.
func (m *Memory) Compact() Position {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.store
	s.compacted = s.rev
	s.history = slices.DeleteFunc(s.history, func(e Event) bool {
		return e.ModRevision < s.compacted && s.items[string(e.Key)].ModRevision != e.ModRevision
	})
	a.changed()
	return Position{s.id, s.rev}
}

// Replace puts another, empty server behind the address. Open streams break;
// the sessions of the old server end with [ErrServerChanged] at their next
// operation.
func (m *Memory) Replace() {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nextID++
	a.install(a.nextID)
	a.cut(errMemoryBroken)
}

// Wipe empties the server and starts its revisions anew under the same cluster
// ID, as an etcd does that lost its data and kept its token. Open streams break.
func (m *Memory) Wipe() {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	a.install(a.store.id)
	a.cut(errMemoryBroken)
}

// Break ends all open streams with the error, or with one that says that the
// connection was lost when it is nil. The sessions go on.
func (m *Memory) Break(err error) {
	if err == nil {
		err = errMemoryBroken
	}
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.cut(err)
}

func (a *memAddress) cut(err error) {
	a.broken++
	a.breakErr = err
	a.changed()
}

// SetFault installs a fault for all sessions; nil removes it.
func (m *Memory) SetFault(f Fault) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.fault = f
}

// SetPageSize sets how many keys a page of a list has, at most; 100 at first.
func (m *Memory) SetPageSize(n int) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.pageSize = max(n, 1)
}

// SetProbeInterval sets the time between two probes of [Memory.Run]; 100 ms at
// first.
func (m *Memory) SetProbeInterval(d time.Duration) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.interval = d
}

// Position returns where the server stands, without being an operation of the
// session.
func (m *Memory) Position() Position {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	return Position{m.addr.store.id, m.addr.store.rev}
}
