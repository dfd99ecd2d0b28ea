package kvstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Leases are the leases of a writer, with the keys that are tied to each. A Leases outlives
// its sessions, which use it one after another: while the same etcd answers, the leases
// continue, so a lost connection deletes no key. When another etcd answers, or a lease has
// ended, the observers of its keys are notified.
//
// A lease is granted when a key needs one, and kept alive by [EngineWriter.Keep]. The leases
// of a writer that is gone expire, unless [Leases.Revoke] ends them at once.
type Leases struct {
	granting  chan struct{} // has an element while a goroutine requests a lease; others wait
	notifying sync.Mutex    // held while observers are notified
	ended     func(int64)   // called for each lease that has ended; set before the first session; may be nil

	mu        sync.Mutex
	book      leaseBook                 // guarded by mu
	observers map[string]func([]string) // guarded by mu
	wake      chan struct{}             // guarded by mu; closed and replaced when a lease is added
	joined    joined                    // guarded by mu
}

// joined is the session that currently uses a Leases.
type joined struct {
	lessor    Lessor
	clusterID uint64
	ttl       time.Duration
	gauge     Gauge        // nil for none
	log       *slog.Logger // nil for none
}

// NewLeases returns an empty Leases.
func NewLeases() *Leases {
	return &Leases{
		granting:  make(chan struct{}, 1),
		book:      newLeaseBook(),
		observers: make(map[string]func([]string)),
		wake:      make(chan struct{}),
	}
}

// with calls f with the book while it holds the mutex.
func (l *Leases) with(f func(*leaseBook)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.book)
}

// join begins a session. If its etcd is another one than before, all leases have ended.
func (l *Leases) join(j joined) {
	l.mu.Lock()
	before := l.joined
	l.joined = j
	l.book.allDue()
	var over []int64
	if before.clusterID != j.clusterID {
		over = l.book.ids()
	}
	if before.gauge == nil {
		l.count(len(l.book.leases))
	}
	l.mu.Unlock()
	l.end(over, "another etcd answers")
}

// attach chooses the lease for a write of the key, and requests a new lease when
// necessary. The caller calls leaseBook.record after each successful attach.
func (l *Leases) attach(ctx context.Context, key string) (int64, error) {
	if id, ok := l.tryAttach(key); ok {
		return id, nil
	}
	select {
	case l.granting <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-l.granting }()
	for {
		if id, ok := l.tryAttach(key); ok {
			return id, nil
		}
		if err := l.grant(ctx); err != nil {
			return 0, err
		}
	}
}

func (l *Leases) tryAttach(key string) (id int64, ok bool) {
	l.with(func(b *leaseBook) { id, ok = b.attach(key) })
	return id, ok
}

func (l *Leases) grant(ctx context.Context) error {
	l.mu.Lock()
	j := l.joined
	l.mu.Unlock()
	asked := time.Now()
	id, lasts, err := j.lessor.Grant(ctx, j.ttl)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.joined.clusterID != j.clusterID {
		return errors.New("another session started during the request for a lease")
	}
	l.book.add(id, lasts, asked)
	l.count(1)
	close(l.wake)
	l.wake = make(chan struct{})
	return nil
}

// count changes the gauge; mu is held.
func (l *Leases) count(n int) {
	if g := l.joined.gauge; g != nil {
		g.Add(float64(n))
	}
}

// owns implements [Writer.Owns].
func (l *Leases) owns(id int64) (owned bool) {
	l.with(func(b *leaseBook) { owned = b.leases[id] != nil })
	return owned
}

func (l *Leases) number() (n int) {
	l.with(func(b *leaseBook) { n = len(b.leases) })
	return n
}

// observe implements [Writer.OnLeaseExpired].
func (l *Leases) observe(prefix string, f func(keys []string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f == nil {
		delete(l.observers, prefix)
		return
	}
	l.observers[prefix] = f
}

// leaseUnknown is the reason for the end of a lease when the server does not know the lease.
const leaseUnknown = "the server no longer knows it"

// end removes leases that have ended and notifies the observers of their keys.
func (l *Leases) end(ids []int64, why string) {
	l.notifying.Lock()
	defer l.notifying.Unlock()
	l.mu.Lock()
	ended := l.book.end(ids...)
	observers := maps.Clone(l.observers)
	log := l.joined.log
	l.count(-len(ended))
	l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		keys := ended[id]
		if l.ended != nil {
			l.ended(id)
		}
		if len(keys) > 0 && log != nil {
			log.Warn("A kvstore lease has ended, and etcd deleted its keys", "lease", id, "keys", len(keys), "reason", why)
		}
		for _, prefix := range slices.Sorted(maps.Keys(observers)) {
			some := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
			if len(some) > 0 {
				observers[prefix](some)
			}
		}
	}
}

// keep keeps the leases alive until the context ends.
func (l *Leases) keep(ctx context.Context, s Lessor) error {
	for {
		l.mu.Lock()
		ids, next := l.book.due(time.Now())
		wake := l.wake
		l.mu.Unlock()
		if len(ids) > 0 {
			l.ask(ctx, s, ids)
		} else {
			await(ctx, wake, next)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// await waits until wake is closed, until the moment (zero: none), or until the context ends.
func await(ctx context.Context, wake <-chan struct{}, moment time.Time) {
	var due <-chan time.Time
	if !moment.IsZero() {
		t := time.NewTimer(time.Until(moment))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-wake:
	case <-due:
	case <-ctx.Done():
	}
}

// ask prolongs leases, and ends the leases that no longer exist.
func (l *Leases) ask(ctx context.Context, s Lessor, ids []int64) {
	asked := time.Now()
	alive, err := s.KeepAlive(ctx, ids)
	var gone, silent []int64
	l.mu.Lock()
	for _, id := range ids {
		switch is, answered := alive[id]; {
		case is:
			l.book.kept(id, asked)
		case answered:
			gone = append(gone, id)
		default:
			silent = append(silent, id)
		}
	}
	if ctx.Err() != nil {
		silent = nil // the session ends; the next one asks again
	}
	over := l.book.unanswered(silent, time.Now())
	log := l.joined.log
	l.mu.Unlock()
	if err != nil && len(silent) > 0 && log != nil {
		log.Debug("Cannot keep kvstore leases alive", "leases", len(silent), "error", err)
	}
	l.end(gone, leaseUnknown)
	l.end(over, "it was not kept alive in time")
}

// Revoke ends all leases now, and so deletes every key tied to them, through the current session.
// Observers are not notified, and the next key gets a new lease. Leases that could not be revoked expire.
func (l *Leases) Revoke(ctx context.Context) error {
	l.mu.Lock()
	j := l.joined
	ids := l.book.ids()
	l.book.end(ids...)
	l.count(-len(ids))
	l.mu.Unlock()
	var errs []error
	for _, id := range ids {
		errs = append(errs, j.lessor.Revoke(ctx, id))
	}
	return errors.Join(errs...)
}

// abandon removes all leases: the session that owned them has ended.
func (l *Leases) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(-len(l.book.leases))
	l.book = newLeaseBook()
}
