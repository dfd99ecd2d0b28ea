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

	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// Params say what a [Sync] keeps, and how.
type Params struct {
	// Prefix is where the keys are. It ends in "/". One writer has one Sync for it.
	Prefix string
	// Shared: others own keys below the prefix too. Only names that were given with
	// Put are looked at; what others own is neither kept in memory nor deleted.
	Shared bool
	// Again asks the owner for the values of names that have to be written again: somebody has
	// changed or deleted them, their lease has ended, or a refused one is due to be tried again.
	// He supplies each once ([Sync.Supply]), at once or later. It must not block, and may be called
	// by several goroutines. With it the Sync holds a value only until it is written or refused.
	Again func(names []string)
	// Unleased: keys are tied to no lease, so they stay after the process has ended, until
	// somebody deletes them: [Sync.Drain], or the next Sync of the prefix, once it is complete and
	// does not want them. In a Shared prefix the next Sync looks only at names that it was given,
	// so only Drain and Delete remove what is not wanted any more. A takeover of equal contents
	// writes nothing, but for a key that has a lease: that is written once to untie it.
	Unleased bool
	// CreateOnly: keys that are tied to no lease are others'. They are neither replaced nor
	// deleted, which every write proves in its own transaction: of two who create a key at once
	// only one does. A name that another has counts as written. Contradicted, which may be nil, is
	// called when there may be news for [Sync.Contradictions]; it must not block, and may be called
	// by several goroutines. An Unleased Sync could not distinguish its own keys.
	CreateOnly   bool
	Contradicted func()
	// Vital: puts are made whatever the space that is granted ([Outbox.Grant]).
	Vital bool
	// Allowance bounds the rate of the writes; nil does not. Several Syncs may share one.
	Allowance *Allowance
	// Outbox is where the writes go. Its writer is also followed.
	Outbox *Outbox
	// Log receives what happens; nil for nowhere.
	Log *slog.Logger
	// Cluster is whose entries they are, the label source_cluster of the metrics.
	Cluster string
	// Reassert is how often what is there is looked at again although nothing is heard of it: by
	// another list, for a shared prefix by a read of each own key. 0 is never.
	Reassert time.Duration
}

// Contradiction is a wanted name that another has with another value.
type Contradiction struct {
	Name string
	// Wanted is nil when the value is not held at present ([Params.Again]).
	Wanted, Theirs []byte
}

// Status describes a [Sync] at one moment.
type Status struct {
	// Wanted is how many names the owner wants. Pending is how many keys are not
	// as wanted, or not known to be; Failed how many of them were refused by the
	// kvstore, each of which is tried again after a while.
	Wanted, Pending, Failed int
	// Stopped: there are no puts at present for want of space that is granted
	// ([Outbox.Grant]), and something is pending.
	Stopped bool
	// Synced: everything that the owner had given was written once.
	Synced bool
	// Errors counts the writes of keys that were refused.
	Errors int64
	// Err is the latest of these errors, with the key, while there are any; else why the keys are
	// not followed, or nothing can be written; empty when all is well.
	Err string
}

// Sync keeps the keys below a prefix of a kvstore as their owner wants them, whatever others,
// leases and servers do to them. It writes only what differs: a key whose value is not the wanted
// one, or which is not tied to a lease of its writer ([Params.Unleased]: to any). Keys that nobody
// wants are deleted once the owner has called Complete, and those given to Delete before. Nothing
// is written before it is known what is there, nor while it is not known.
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

// New returns a Sync that wants nothing yet.
func New(p Params) *Sync {
	if p.CreateOnly && p.Unleased {
		panic("syncstore.New: CreateOnly and Unleased exclude each other")
	}
	log := cmp.Or(p.Log, slog.New(slog.DiscardHandler)).With("prefix", p.Prefix)
	s := &Sync{
		p: p, log: log, reachWithin: reachWithin, running: semaphore.NewWeighted(1), ledger: p.newLedger(), maxWrites: minWrites,
		follower: follow.Follower{Log: log},
	}
	s.follower.Streams = func(open bool) { s.update(func(l *ledger) { l.following = open }) }
	if !p.Shared { // else the own keys are read instead
		s.follower.Relist = p.Reassert
	}
	return s
}

func (p *Params) newLedger() ledger {
	l := newLedger(p.Shared, p.Again != nil, p.CreateOnly)
	l.leases.none = p.Unleased
	return l
}

// Put wants a name with a value. The value is kept and must not be changed.
func (s *Sync) Put(name string, value []byte) {
	s.update(func(l *ledger) { l.put(name, value, time.Now()) })
}

// Supply gives the value of a name that was asked for again. One that is not wanted any more,
// because there is a newer one, is passed over.
func (s *Sync) Supply(name string, value []byte) {
	s.update(func(l *ledger) { l.supply(name, value, time.Now()) })
}

// Delete does not want a name any more.
func (s *Sync) Delete(name string) { s.update(func(l *ledger) { l.remove(name, time.Now()) }) }

// Complete notes that everything known at start was given: from now on keys that nobody wants are
// deleted, those of a shared prefix only if they were wanted before.
func (s *Sync) Complete() { s.update((*ledger).markComplete) }

// update changes the ledger, and does what follows from that.
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

// change is the part of update that holds the lock, also when f panics. It returns the
// names whose values have to be requested, whether there is something to write, and
// whether contradictions may have changed.
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

// Contradictions are the wanted names that others have with other values, in no
// order. What is wanted is not there as long as they are.
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
		s.p.Outbox.wake.Give()
	}
}

// Status returns a copy of what is known.
func (s *Sync) Status() Status {
	follower, writeErr := s.follower.Status(), s.p.Outbox.lastError()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.ledger
	st := Status{
		Wanted: l.wanted, Pending: l.dirty, Failed: len(l.failures.of), Stopped: l.stopped && l.dirty > 0, Synced: l.synced, Errors: s.errors.Load(),
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

// updateStopped stops the puts while the outbox has stopped them, or lets them go on.
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
