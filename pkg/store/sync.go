package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// SyncParams say what a [Sync] keeps, and how.
type SyncParams struct {
	// Prefix is where the keys are. It ends in "/". One writer has one Sync for it.
	Prefix string
	// Shared: others own keys below the prefix too. Only names that were given with
	// Put are looked at; what others own is neither kept in memory nor deleted.
	Shared bool
	// Again asks the owner for the values of names that have to be written again:
	// somebody has changed or deleted them, or their lease has ended. He supplies
	// them ([Sync.Supply]) in his own time, at once if he likes; each name is asked
	// for once. It must not block. With it the Sync holds a value only until it is
	// written; without it, always.
	Again func(names []string)
	// Outbox is where the writes go. Its writer is also who is followed.
	Outbox *Outbox
	// Log receives what happens; nil for nowhere.
	Log *slog.Logger
	// Cluster is whose entries they are, the label source_cluster of the metrics.
	Cluster string
	// Reassert is how often what is there is looked at again although nothing is
	// heard of it: by another list, for a shared prefix by a read of each own key.
	// 0 is never.
	Reassert time.Duration
}

// SyncStatus describes a [Sync] at one moment.
type SyncStatus struct {
	// Wanted is how many names the owner wants. Pending is how many keys are not
	// as wanted, or not known to be; Failed how many of them were refused by the
	// kvstore, each of which is tried again after a while.
	Wanted, Pending, Failed int
	// Synced: everything was as wanted once, since the owner began.
	Synced bool
	// Errors counts the writes of keys that were refused.
	Errors int64
	// Err is the latest of these errors, with the key, while there are any; else
	// why the keys are not followed; empty when all is well.
	Err string
}

// Sync keeps the keys below a prefix of a kvstore as their owner wants them,
// whatever others, leases and servers do to them.
//
// It writes only what differs: a key whose value is not the wanted one, or which
// is not tied to a lease of its writer. Keys of an earlier process with the
// wanted value are thus written once, for the lease. Keys that nobody wants are
// deleted once the owner has called Complete, and those given to Delete before.
// Nothing is written before it is known what is there, nor while it is not known.
//
// All methods may be called from any goroutine. Put, Delete, Complete and
// Incomplete never block, and may be called whether Run runs or not. Run, Drain
// and Forget exclude each other.
type Sync struct {
	p   SyncParams
	log *slog.Logger

	running chan struct{} // filled by Run, Drain and Forget, which own what follower owns
	follower

	leasesLost atomic.Bool  // some have ended since the ledger was told
	errors     atomic.Int64 // refused writes of keys
	retryAt    atomic.Int64 // when the next refused write is due, in Unix nanoseconds; 0: none

	mu      sync.Mutex
	ledger  ledger        // guarded by mu
	lastErr string        // guarded by mu; the latest refusal
	most    int           // guarded by mu; how many writes it may have in a transaction: fewer after refusals
	changed chan struct{} // guarded by mu; closed when all is as wanted; nil when nobody waits
	landed  chan struct{} // guarded by mu; closed when no write is under way; likewise

	ready bool // guarded by the outbox's mu: in its queue
}

// NewSync returns a Sync that wants nothing yet.
func NewSync(p SyncParams) *Sync {
	log := p.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("prefix", p.Prefix)
	return &Sync{
		p: p, log: log, running: make(chan struct{}, 1), ledger: newLedger(p.Shared, p.Again != nil), most: kvstore.MaxWrites,
		follower: follower{log: log, again: againAfter(p)},
	}
}

func againAfter(p SyncParams) time.Duration {
	if p.Shared {
		return 0 // own keys are read instead
	}
	return p.Reassert
}

// Put wants a name with a value. The value is kept and must not be changed.
func (s *Sync) Put(name string, value []byte) {
	s.do(func(l *ledger) { l.put(name, value, time.Now()) })
}

// Supply gives the value of a name again that was asked for. One that is not
// wanted any more, because there is a newer one, is passed over.
func (s *Sync) Supply(name string, value []byte) {
	s.do(func(l *ledger) { l.supply(name, value, time.Now()) })
}

// Delete does not want a name any more.
func (s *Sync) Delete(name string) { s.do(func(l *ledger) { l.drop(name, time.Now()) }) }

// Complete tells that everything known at start was given: from now on keys that
// nobody wants are deleted, those of a shared prefix only if they were wanted
// before.
func (s *Sync) Complete() { s.do(func(l *ledger) { l.completed(time.Now()) }) }

// Incomplete tells that the owner begins anew: he will give everything that he
// wants once more. Until Complete nothing is deleted but what he deletes, and
// what he wanted before stays wanted; then goes what he has not given again. An
// owner who computes differences by himself does not need it.
func (s *Sync) Incomplete() { s.do((*ledger).beginAnew) }

// do does something to the ledger, and what follows from it.
func (s *Sync) do(f func(*ledger)) {
	s.mu.Lock()
	l := &s.ledger
	if s.leasesLost.Swap(false) {
		l.leasesEnded(s.p.Outbox.writer.Owns)
	}
	f(l)
	l.mark()
	if s.changed != nil && l.clean() {
		close(s.changed)
		s.changed = nil
	}
	if s.landed != nil && l.flying == 0 {
		close(s.landed)
		s.landed = nil
	}
	asks, work := l.asked(), l.backlog() > 0
	s.noteRetry(l)
	s.mu.Unlock()
	if work {
		s.p.Outbox.offer(s)
	}
	if len(asks) > 0 {
		s.p.Again(asks)
	}
}

// noteRetry keeps retryAt. The lock is held.
func (s *Sync) noteRetry(l *ledger) {
	var at int64
	if next, ok := l.failures.next(); ok && l.open {
		at = next.UnixNano()
	}
	if s.retryAt.Swap(at) != at && at != 0 {
		s.p.Outbox.signal()
	}
}

// Run follows the prefix, and has what differs written, until ctx ends.
func (s *Sync) Run(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	o := s.p.Outbox
	o.add(s)
	defer s.land()
	defer o.remove(s)
	o.writer.OnLeaseExpired(s.p.Prefix, func([]string) {
		s.leasesLost.Store(true)
		o.offer(s)
	})
	defer o.writer.OnLeaseExpired(s.p.Prefix, nil)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.sessions(ctx, s, Session{Client: o.writer, Prefix: s.p.Prefix}) })
	if s.p.Shared && s.p.Reassert > 0 {
		g.Go(func() error { return s.lookAgain(ctx) })
	}
	return g.Wait()
}

// land waits for the writes that are under way. They have deadlines.
func (s *Sync) land() {
	s.mu.Lock()
	if s.ledger.flying == 0 {
		s.mu.Unlock()
		return
	}
	landed := make(chan struct{})
	s.landed = landed
	s.mu.Unlock()
	<-landed
}

func (s *Sync) lock(ctx context.Context) error {
	select {
	case s.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Sync) unlock() { <-s.running }

// lookAgain reads the own keys of a shared prefix from time to time.
func (s *Sync) lookAgain(ctx context.Context) error {
	for {
		if err := waiting.Sleep(ctx, s.p.Reassert); err != nil {
			return err
		}
		for _, name := range s.names() {
			key := s.p.Prefix + name
			kv, at, err := s.p.Outbox.writer.Get(ctx, key)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.log.Debug("Cannot look at a key again", "key", key, "error", err)
				break
			}
			seen := kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{ModRevision: at.Revision}}
			if kv != nil {
				seen = kvstore.Event{Type: kvstore.EventPut, KeyValue: *kv}
			}
			s.do(func(l *ledger) { l.event([]byte(name), &seen, s.owns) })
		}
	}
}

// names are those of all lines.
func (s *Sync) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, s.ledger.records.n)
	for p := range s.ledger.records.all() {
		names = append(names, s.ledger.records.at(p).name)
	}
	return names
}

// WaitClean waits until everything was given (Complete), everything wanted is
// there and acknowledged, and nothing unwanted. The error is the context's, with
// what is missing.
func (s *Sync) WaitClean(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.ledger.clean() && !s.leasesLost.Load() {
			s.mu.Unlock()
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			st := s.Status()
			return fmt.Errorf("waiting until %s is as wanted: %w (pending %d, failed %d) %s", s.p.Prefix, ctx.Err(), st.Pending, st.Failed, st.Err)
		}
	}
}

// isClean tells whether WaitClean would return at once.
func (s *Sync) isClean() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.clean() && !s.leasesLost.Load()
}

// Drain withdraws all keys of the owner, those of a prefix that is not shared in
// one transaction, and forgets everything. It waits for a Run to end first. After
// an error it may be called again.
func (s *Sync) Drain(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.withdraw(ctx); err != nil {
		return fmt.Errorf("withdrawing %s: %w", s.p.Prefix, err)
	}
	s.forget()
	return nil
}

func (s *Sync) withdraw(ctx context.Context) error {
	o := s.p.Outbox
	if !s.p.Shared {
		_, err := o.writer.DeletePrefix(ctx, s.p.Prefix, o.held()...)
		return err
	}
	var writes []kvstore.Write
	for _, name := range s.names() {
		writes = append(writes, kvstore.Write{Key: s.p.Prefix + name, Delete: true})
	}
	for len(writes) > 0 {
		n := min(len(writes), kvstore.MaxWrites)
		if _, err := o.writer.Update(ctx, writes[:n], o.held()...); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}

// Forget forgets everything, and withdraws nothing. It waits for a Run to end
// first.
func (s *Sync) Forget() {
	s.running <- struct{}{}
	defer s.unlock()
	s.forget()
}

func (s *Sync) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger = newLedger(s.p.Shared, s.p.Again != nil)
	s.lastErr = ""
	s.pos = kvstore.Position{}
	s.state.reset()
}

// Status returns a copy of what is known.
func (s *Sync) Status() SyncStatus {
	follow := s.state.snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.ledger
	st := SyncStatus{
		Wanted: l.wanted, Pending: l.dirty, Failed: len(l.failures.of), Synced: l.synced, Errors: s.errors.Load(),
	}
	switch {
	case st.Failed > 0:
		st.Err = s.lastErr
	case follow.Err != nil && !errors.Is(follow.Err, context.Canceled):
		st.Err = follow.Err.Error()
	}
	return st
}

// scope is that of the keys in figures.
func (s *Sync) scope() string { return wire.ScopeFromKey(s.p.Prefix) }

// owns tells whether a lease is ours.
func (s *Sync) owns(lease int64) bool { return s.p.Outbox.writer.Owns(lease) }

// errNotYet is why nothing is proved although all seemed to be as wanted.
var errNotYet = errors.New("the keys have changed meanwhile")

// prove waits until everything is as wanted, and shows that it is so in the
// server that answers now: what it says, after that, that it has come to, has been
// followed, and everything is still as wanted.
func (s *Sync) prove(ctx context.Context) error {
	if err := s.WaitClean(ctx); err != nil {
		return err
	}
	before := s.state.reachedSoFar()
	at, err := s.p.Outbox.writer.Head(ctx)
	if err != nil {
		return err
	}
	if at.ClusterID != before.ClusterID || at.Revision < before.Revision {
		return fmt.Errorf("%w: another server answers", errNotYet)
	}
	if err := s.state.reach(ctx, at, s.p.Prefix); err != nil {
		return err
	}
	if !s.isClean() || !s.state.snapshot().Following {
		return errNotYet
	}
	return nil
}
