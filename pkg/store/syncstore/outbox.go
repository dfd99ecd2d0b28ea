package syncstore

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Outbox collects the writes of all Syncs of one writer, and makes them in transactions. When no transaction is
// in flight, a write is sent at once. Otherwise writes are collected, and the Syncs take turns. When the
// kvstore cannot be reached, everything is tried again. A write that the kvstore refuses, because of missing
// rights or its size, is tried again separately, at growing intervals, and delays no other write.
//
// All methods may be called from any goroutine.
type Outbox struct {
	writer  kvstore.Writer
	holding func() *kvstore.Lock // nil: no lock is needed
	metrics *Metrics
	log     *slog.Logger

	warnings *rate.Limiter // of writes that are refused

	running *semaphore.Weighted
	wake    waiting.Signal // there is something to do

	mu    sync.Mutex
	syncs map[*Sync]struct{} // guarded by mu; those that run
	queue []*Sync            // guarded by mu; those of them with something to write
	err   error              // guarded by mu; why nothing can be written; nil when it can

	space
}

// Bounds of the size of a transaction, in addition to [kvstore.MaxWrites], and of the number of transactions in
// flight. A further one is sent only when there are minWrites for it, which pays off over a slow link. A Sync
// may have minWrites in its first transaction, and twice as many after each acknowledged one, so that a prefix
// which may not be written costs few requests.
const (
	transactionBytes = 512 << 10
	maxInFlight      = 4
	minWrites        = 128
)

// NewOutbox returns an Outbox of a writer. holding is called for each write, and returns the lock under which
// it is made; nil for none. A lost lock ends Run. metrics and log may be nil.
func NewOutbox(w kvstore.Writer, holding func() *kvstore.Lock, metrics *Metrics, log *slog.Logger) *Outbox {
	o := &Outbox{
		writer: w, holding: holding, metrics: metrics, log: cmp.Or(log, slog.New(slog.DiscardHandler)), warnings: rate.NewLimiter(rate.Every(time.Second), 10),
		running: semaphore.NewWeighted(1), wake: waiting.NewSignal(), syncs: make(map[*Sync]struct{}),
	}
	o.granted.Store(Unbounded)
	return o
}

// holding returns the condition that a lock is held; nil for none.
func holding(lock func() *kvstore.Lock) []kvstore.Option {
	if lock == nil {
		return nil
	}
	return []kvstore.Option{kvstore.Holding(lock())}
}

func (o *Outbox) add(s *Sync) {
	o.mu.Lock()
	o.syncs[s] = struct{}{}
	o.mu.Unlock()
	o.metrics.setRunning(s, true)
	s.updateStopped()
}

func (o *Outbox) remove(s *Sync) {
	o.metrics.setRunning(s, false)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.syncs, s)
	s.queued = false
	o.queue = slices.DeleteFunc(o.queue, func(q *Sync) bool { return q == s })
}

func (o *Outbox) offer(s *Sync) {
	o.enqueue(s)
	o.wake.Notify()
}

func (o *Outbox) enqueue(syncs ...*Sync) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range syncs {
		if _, runs := o.syncs[s]; runs && !s.queued {
			s.queued = true
			o.queue = append(o.queue, s)
		}
	}
}

func (o *Outbox) lastError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *Outbox) setError(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// collect makes a batch of the queued writes. Unless small is set, it makes none of fewer than minWrites. A
// Sync with refused writes has a batch of its own, and only if retries is set: then retry is true. A Sync whose
// allowance is used up waits: due is when the first of these Syncs may write again, zero when there is none.
func (o *Outbox) collect(small, retries bool) (b batch, retry bool, due time.Time) {
	now := time.Now()
	if !small && !o.hasMinWrites(now) {
		return nil, false, due
	}
	var later []*Sync
	defer func() { o.enqueue(later...) }()
	writes, bytes := kvstore.MaxWrites, o.maxBytes()
	for writes > 0 && bytes > 0 && !retry {
		s, others := o.next()
		if s == nil {
			break
		}
		window := s.window()
		room := window - b.count(s)
		if room <= 0 || window < minWrites && (!retries || len(b) > 0) {
			later = append(later, s)
			continue
		}
		allowed := s.p.Allowance.left(now)
		if allowed == 0 {
			due = earlier(due, s.p.Allowance.again(now))
			later = append(later, s)
			continue
		}
		parts, left, more := s.takeWrites(min(room, max(writes/(others+1), 1), allowed), bytes, len(b) == 0)
		s.p.Allowance.spend(now, parts, len(s.p.Prefix))
		o.countPuts(s, parts)
		if more {
			o.offer(s)
		}
		if len(parts) > 0 {
			b = append(b, syncWrites{s, parts})
			retry = window < minWrites
		} else if more {
			break // it does not fit
		}
		writes, bytes = writes-len(parts), left
	}
	return b, retry, due
}

func (o *Outbox) next() (s *Sync, others int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil, 0
	}
	s = o.queue[0]
	o.queue = o.queue[1:]
	s.queued = false
	return s, len(o.queue)
}

func (o *Outbox) hasMinWrites(now time.Time) bool {
	o.mu.Lock()
	queue := slices.Clone(o.queue)
	o.mu.Unlock()
	n := 0
	for _, s := range queue {
		if n += min(s.backlog(), s.p.Allowance.left(now)); n >= minWrites {
			return true
		}
	}
	return false
}

// collectRetry makes a batch of a refused write that is due, and returns when the next one is due.
func (o *Outbox) collectRetry(now time.Time) (b batch, next time.Time) {
	o.mu.Lock()
	var due *Sync
	for s := range o.syncs {
		switch at := s.retryAt.Load(); {
		case at == 0:
		case at <= now.UnixNano():
			due = s
		case next.IsZero() || at < next.UnixNano():
			next = time.Unix(0, at)
		}
	}
	o.mu.Unlock()
	if due == nil {
		return nil, next
	}
	one, ok := due.takeRetry(now)
	if !ok {
		return nil, now // another one may be due
	}
	parts := []part{one}
	o.countPuts(due, parts)
	return batch{{due, parts}}, next
}
