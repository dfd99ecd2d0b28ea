package store

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Outbox collects what all Syncs of one writer have to write, and writes it in
// transactions: at once what comes when nothing is under way, and else what has
// come meanwhile. Each Sync with something to write has its turn.
//
// When the kvstore cannot be reached everything waits, and is tried again. What a
// kvstore refuses for what it is, because of missing rights or of its size, is
// tried again by itself, less and less often, and holds up nothing else.
//
// All methods may be called from any goroutine.
type Outbox struct {
	writer  kvstore.Writer
	holding func() *kvstore.Lock // nil: no lock is needed
	metrics *SyncMetrics
	log     *slog.Logger

	running chan struct{} // filled by Run
	wake    chan struct{} // filled when there is something to do

	mu    sync.Mutex
	syncs map[*Sync]struct{} // guarded by mu; those that run
	queue []*Sync            // guarded by mu; those of them with something to write
}

// What a transaction may be, and how many may be under way at once: more than one
// only while there is a whole one to write.
const (
	transactionBytes = 512 << 10
	transactions     = 4
)

// NewOutbox returns an Outbox of a writer. holding gives the lock under which
// everything is written, at the time of each write; nil for none. A lock that is
// lost ends Run. metrics may be nil, and log as well.
func NewOutbox(w kvstore.Writer, holding func() *kvstore.Lock, metrics *SyncMetrics, log *slog.Logger) *Outbox {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Outbox{
		writer: w, holding: holding, metrics: metrics, log: log,
		running: make(chan struct{}, 1), wake: make(chan struct{}, 1), syncs: make(map[*Sync]struct{}),
	}
}

// held are the conditions of all writes.
func (o *Outbox) held() []kvstore.Option {
	if o.holding == nil {
		return nil
	}
	return []kvstore.Option{kvstore.Holding(o.holding())}
}

// add has a Sync take part, until it is removed.
func (o *Outbox) add(s *Sync) {
	o.mu.Lock()
	o.syncs[s] = struct{}{}
	o.mu.Unlock()
	o.metrics.add(s)
}

func (o *Outbox) remove(s *Sync) {
	o.metrics.remove(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.syncs, s)
	s.ready = false
	o.queue = slices.DeleteFunc(o.queue, func(q *Sync) bool { return q == s })
}

// offer notes that a Sync has something to write, or to draw conclusions from.
func (o *Outbox) offer(s *Sync) {
	o.mu.Lock()
	if _, runs := o.syncs[s]; runs && !s.ready {
		s.ready = true
		o.queue = append(o.queue, s)
	}
	o.mu.Unlock()
	o.signal()
}

func (o *Outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// load is a transaction to be: the parts of each Sync.
type load []cargo

type cargo struct {
	of    *Sync
	parts []part
}

// collect makes a transaction of what there is: unless there is a whole one, only
// if a part of one is wanted.
func (o *Outbox) collect(partial bool) load {
	if !partial && !o.fillsOne() {
		return nil
	}
	var l load
	most, bytes := kvstore.MaxWrites, transactionBytes
	for most > 0 && bytes > 0 {
		s, others := o.next()
		if s == nil {
			break
		}
		parts, left, more := s.take(max(most/(others+1), 1), bytes, len(l) == 0)
		if more {
			o.offer(s)
		}
		if len(parts) > 0 {
			l = append(l, cargo{s, parts})
		} else if more {
			break // it does not fit
		}
		most, bytes = most-len(parts), left
	}
	return l
}

// next takes the first Sync from the queue, and tells how many others there are.
func (o *Outbox) next() (s *Sync, others int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil, 0
	}
	s = o.queue[0]
	o.queue = o.queue[1:]
	s.ready = false
	return s, len(o.queue)
}

// fillsOne tells whether there is enough for a whole transaction.
func (o *Outbox) fillsOne() bool {
	o.mu.Lock()
	queue := slices.Clone(o.queue)
	o.mu.Unlock()
	n := 0
	for _, s := range queue {
		if n += s.backlog(); n >= kvstore.MaxWrites {
			return true
		}
	}
	return false
}

// failed gives a write that was refused before and is due, and tells when the
// next one is.
func (o *Outbox) failed(now time.Time) (l load, next time.Time) {
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
	one, ok := due.takeFailed(now)
	if !ok {
		return nil, now // another one may be due
	}
	return load{{due, []part{one}}}, next
}
