package syncstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// Params are the parameters of a [Sync].
type Params struct {
	// Prefix is where the keys are. It ends in "/". One writer has one Sync for it.
	Prefix string
	// Shared: others own keys below the prefix too. Only names that were given with Put are considered; the
	// keys of others are neither kept in memory nor deleted.
	Shared bool
	// Again asks the owner for the values of names that have to be written again: another writer has changed or
	// deleted them, their lease has ended, or a refused write is due to be tried again. The owner supplies each
	// once ([Sync.Supply]), at once or later. Again must not block, and may be called by several goroutines.
	// With it the Sync holds a value only until it is written or refused.
	Again func(names []string)
	// Unleased: keys are tied to no lease, so they stay after the process has ended, until they are deleted by
	// [Sync.Drain], or by the next Sync of the prefix, once it is complete and does not want them. In a Shared
	// prefix the next Sync considers only names that it was given, so only Drain and Delete remove keys that
	// are no longer wanted. A takeover of equal contents writes only the keys that have a lease: each is
	// written once to remove the lease.
	Unleased bool
	// CreateOnly: keys that are tied to no lease belong to others. They are neither replaced nor deleted. Every
	// write checks this in its own transaction: of two writers that create a key at once, only one succeeds. A
	// name that another writer has counts as written. Contradicted, which may be nil, is called when
	// [Sync.Contradictions] may have changed; it must not block, and may be called by several goroutines. An
	// Unleased Sync could not distinguish its own keys.
	CreateOnly   bool
	Contradicted func()
	// Sole: nothing else writes below the Shared prefix with leases of the writer. So all keys with such leases are the
	// Sync's, also those of names that it was not given, or was given before. After a restore from a backup, deleted keys
	// are back, and the writer keeps their leases alive.
	Sole bool
	// Vital: puts are made even without granted space ([Outbox.Grant]).
	Vital bool
	// Allowance bounds the rate of the writes; nil is no bound. Several Syncs may share one.
	Allowance *Allowance
	// Outbox makes the writes. Its writer is also used to follow the prefix.
	Outbox *Outbox
	// Log receives the log messages; nil discards them.
	Log *slog.Logger
	// Cluster is the cluster of the entries, the label source_cluster of the metrics.
	Cluster string
	// Reassert is the interval at which the present keys are read again without an event: by another list, or
	// for a shared prefix by a read of each own key. 0 is never.
	Reassert time.Duration
}

// Contradiction is a wanted name that another writer has with another value.
type Contradiction struct {
	Name string
	// Wanted is nil when the value is not held at present ([Params.Again]).
	Wanted, Theirs []byte
}

// Status describes a [Sync] at one moment.
type Status struct {
	// Wanted is the number of names that the owner wants. Pending is the number of keys that are not as wanted,
	// or not known to be. Failed is the number of those that were refused by the kvstore; each is tried again
	// after a while.
	Wanted, Pending, Failed int
	// Stopped: puts are stopped because there is no granted space ([Outbox.Grant]), and something is pending.
	Stopped bool
	// Synced: everything that the owner had given was written once.
	Synced bool
	// AsOf is the time as of which the present keys are known; zero when they never were. It advances with a list, and
	// with [Sync.Observe].
	AsOf time.Time
	// Errors counts the writes of keys that were refused.
	Errors int64
	// Err is the latest of these errors, with the key, while any key is refused; else the reason why the keys
	// are not followed or nothing can be written; empty when there is no error.
	Err string
}

// Sync keeps the keys below a prefix of a kvstore as their owner wants them, despite changes by other writers,
// expired leases and lost servers. It writes only differing keys: those whose value is not the wanted one, or
// which are not tied to a lease of their writer ([Params.Unleased]: which are tied to any lease). Unwanted keys
// are deleted once the owner has called Complete, and names given to Delete even before that. Nothing is
// written before the present keys are known, nor while they are not known.
//
// All methods may be called from any goroutine. Put, Delete and Complete never block, and
// may be called whether Run runs or not. Run and Drain exclude each other.
type Sync struct {
	p   Params
	log *slog.Logger

	reachWithin time.Duration // see the constant

	running  *semaphore.Weighted // held by Run and Drain, which own the follower
	follower follow.Follower

	errors  atomic.Int64 // refused writes of keys
	retryAt atomic.Int64 // when the next refused write is due, in Unix nanoseconds; 0: none

	mu        sync.Mutex
	ledger    ledger    // guarded by mu
	lastErr   string    // guarded by mu; the latest refusal
	maxWrites int       // guarded by mu; see window
	waiters   []*waiter // guarded by mu

	queued bool // guarded by the outbox's mu: in its queue
}

// New returns a Sync without wanted names.
func New(p Params) *Sync {
	if p.CreateOnly && p.Unleased {
		panic("syncstore.New: CreateOnly and Unleased exclude each other")
	}
	log := cmp.Or(p.Log, slog.New(slog.DiscardHandler)).With("prefix", p.Prefix)
	s := &Sync{
		p: p, log: log, reachWithin: reachWithin, running: semaphore.NewWeighted(1), ledger: p.newLedger(), maxWrites: minWrites,
		follower: follow.Follower{Log: log},
	}
	s.follower.Streams = func(open bool) { s.update(func(l *ledger) { l.setFollowing(open) }) }
	if !p.Shared { // else the own keys are read instead
		s.follower.Relist = p.Reassert
	}
	return s
}

func (p *Params) newLedger() ledger {
	l := newLedger(p.Shared, p.Again != nil, p.CreateOnly)
	l.leases.none, l.sole = p.Unleased, p.Sole && !p.Unleased
	return l
}

// Put sets the wanted value of a name. The value is kept and must not be changed.
func (s *Sync) Put(name string, value []byte) {
	s.update(func(l *ledger) { l.put(name, value, time.Now()) })
}

// Supply gives the value of a name that [Params.Again] has requested. A value that is no longer wanted, because
// there is a newer one, is ignored.
func (s *Sync) Supply(name string, value []byte) {
	s.update(func(l *ledger) { l.supply(name, value, time.Now()) })
}

// Delete makes a name unwanted, so that its key is deleted.
func (s *Sync) Delete(name string) { s.update(func(l *ledger) { l.remove(name, time.Now()) }) }

// Complete notes that the owner has given everything known at start. From now on unwanted keys are deleted,
// those of a shared prefix only if they were wanted before.
func (s *Sync) Complete() { s.update((*ledger).markComplete) }

// update changes the ledger, and then calls the outbox and the owner as the change requires.
func (s *Sync) update(f func(*ledger)) {
	missing, work, contradicted := s.change(f)
	if work {
		s.p.Outbox.offer(s)
	}
	if contradicted && s.p.Contradicted != nil {
		s.p.Contradicted()
	}
	if len(missing) > 0 {
		s.p.Again(missing)
	}
}

// change is the part of update that holds the lock, which it releases also when f panics. It returns the names
// whose values have to be requested, whether there is something to write, and whether contradictions may have
// changed.
func (s *Sync) change(f func(*ledger)) (missing []string, work, contradicted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.ledger
	f(l)
	l.updateSynced()
	s.wake()
	s.updateRetryAt(l)
	return l.takeMissing(), l.backlog() > 0, l.takeKeptChanged()
}

// Contradictions returns the wanted names that other writers have with other values, in no order. The wanted
// values are not present while these keys exist.
func (s *Sync) Contradictions() []Contradiction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.contradictions()
}

// updateRetryAt keeps retryAt up to date. The lock is held.
func (s *Sync) updateRetryAt(l *ledger) {
	var at int64
	if next, ok := l.failures.next(); ok && l.following {
		at = next.UnixNano()
	}
	if s.retryAt.Swap(at) != at && at != 0 {
		s.p.Outbox.wake.Notify()
	}
}

// Observe takes the result of a linearizable read of the kvstore ([kvstore.Durable.OnProbe]). Once everything up to its
// revision was followed, the present keys are known as of the time before that read.
func (s *Sync) Observe(p kvstore.Probe) { s.follower.Observe(p) }

// Status returns a copy of the present status.
func (s *Sync) Status() Status {
	follower, writeErr := s.follower.Status(), s.p.Outbox.lastError()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.ledger
	st := Status{
		Wanted: l.wanted, Pending: l.dirty, Failed: len(l.failures.of), Stopped: l.stopped && l.dirty > 0, Synced: l.synced, AsOf: follower.AsOf,
		Errors: s.errors.Load(),
	}
	switch {
	case st.Failed > 0:
		st.Err = s.lastErr
	case follower.Err != nil && !errors.Is(follower.Err, context.Canceled):
		st.Err = follower.Err.Error()
	case writeErr != nil && st.Pending > 0:
		st.Err = writeErr.Error()
	}
	return st
}

// updateStopped stops the puts while the outbox has stopped them, or lets them continue.
func (s *Sync) updateStopped() {
	o := s.p.Outbox
	s.update(func(l *ledger) { l.setStopped(o.Stopped() && (!s.p.Vital || o.full.Load())) })
}

// owns reports whether a key with this lease may be ours.
func (s *Sync) owns(lease int64) bool {
	if s.p.Unleased {
		return lease == 0
	}
	return s.p.Outbox.writer.Owns(lease)
}
