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

// Leases are the leases that a writer ties its keys to, and which keys those are. A Leases
// outlives the sessions that it is given to, one after another: as long as the same etcd
// answers the same leases go on, so that a lost connection withdraws nothing. When another
// etcd answers, or a lease has ended, the observers of its keys are notified.
//
// A lease is granted when a key needs one, and kept alive by [EngineWriter.Keep]. The leases
// of a writer that is gone run out, unless [Leases.Revoke] ends them at once.
type Leases struct {
	granting  chan struct{} // filled by who grants a lease, or waits for one
	notifying sync.Mutex    // held while observers are notified
	ended     func(int64)   // notified of each lease that has ended; set before the first session, nil for nobody

	mu        sync.Mutex
	book      leaseBook                 // guarded by mu
	observers map[string]func([]string) // guarded by mu
	wake      chan struct{}             // guarded by mu; closed and replaced when there is another lease
	joined    joined                    // guarded by mu
}

// joined is the session that a Leases belongs to at present.
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

// with gives f the book under the lock.
func (l *Leases) with(f func(*leaseBook)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.book)
}

// join begins a session. Leases of another etcd have ended.
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

// attach chooses the lease for a write of the key, and asks for another one when
// that is needed. leaseBook.record follows each attach.
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

// leaseUnknown is why a lease has ended that a server was asked about.
const leaseUnknown = "the server no longer knows it"

// end forgets leases that have ended and notifies the observers of their keys.
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

// await waits for a wake-up, a moment (zero: none), or the end of the context.
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

// ask prolongs leases, and ends those that are gone.
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
		silent = nil // the session ends; the next one will ask
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

// Revoke ends all leases now, with every key tied to them, through the present session.
// Observers are not notified, and the next key gets another lease. Those of the error run out.
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

// abandon forgets everything: the session that owned it has ended.
func (l *Leases) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(-len(l.book.leases))
	l.book = newLeaseBook()
}
