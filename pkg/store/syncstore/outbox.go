package syncstore

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

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
	metrics *Metrics
	log     *slog.Logger

	warnings *rate.Limiter // of writes that are refused

	running chan struct{} // filled by Run
	wake    chan struct{} // filled when there is something to do

	mu    sync.Mutex
	syncs map[*Sync]struct{} // guarded by mu; those that run
	queue []*Sync            // guarded by mu; those of them with something to write
	fault error              // guarded by mu; why nothing can be written; nil when it can

	space
}

// What a transaction may be, beside [kvstore.MaxWrites], and how many may be under way
// at once: more than one only while there is enough for it. (Of 1, 2, 4 and 8 at once,
// with an etcd on the same machine, all publish 10,000 keys in 0.23 to 0.26 s; over a
// link that is slow several are worth it.)
//
// A Sync has enough writes in its first transaction, and twice as many after each that
// was made, so that a prefix which may not be written costs few requests.
const (
	transactionBytes = 512 << 10
	transactions     = 4
	enough           = 128 // writes
)

// NewOutbox returns an Outbox of a writer. holding gives the lock under which
// everything is written, at the time of each write; nil for none. A lock that is
// lost ends Run. metrics may be nil, and log as well.
func NewOutbox(w kvstore.Writer, holding func() *kvstore.Lock, metrics *Metrics, log *slog.Logger) *Outbox {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := &Outbox{
		writer: w, holding: holding, metrics: metrics, log: log, warnings: rate.NewLimiter(rate.Every(time.Second), 10),
		running: make(chan struct{}, 1), wake: make(chan struct{}, 1), syncs: make(map[*Sync]struct{}),
	}
	o.granted.Store(Unbounded)
	return o
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
	s.stopOrGo()
}

func (o *Outbox) remove(s *Sync) {
	o.metrics.remove(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.syncs, s)
	s.ready = false
	o.queue = slices.DeleteFunc(o.queue, func(q *Sync) bool { return q == s })
}

// offer notes that a Sync has something to write.
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

// trouble is why nothing can be written at present.
func (o *Outbox) trouble() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fault
}

func (o *Outbox) note(trouble error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = trouble
}

// load is a transaction to be: the parts of each Sync.
type load []cargo

type cargo struct {
	of    *Sync
	parts []part
}

// collect makes a transaction of what there is: unless that is enough, only if a few
// writes are wanted as well. A Sync of which writes were refused has one by
// itself, if that is wanted: alone tells. One whose allowance is used up waits: due
// is when the first of them has some again, zero when there is none.
func (o *Outbox) collect(few, suspects bool) (l load, alone bool, due time.Time) {
	now := time.Now()
	if !few && !o.hasEnough(now) {
		return nil, false, due
	}
	var later []*Sync
	defer func() { o.putBack(later) }()
	most, bytes := kvstore.MaxWrites, o.fits()
	for most > 0 && bytes > 0 && !alone {
		s, others := o.next()
		if s == nil {
			break
		}
		window := s.window()
		if window < enough && (!suspects || len(l) > 0) {
			later = append(later, s)
			continue
		}
		room := window - l.writesOf(s)
		if room <= 0 {
			later = append(later, s)
			continue
		}
		allowed := s.p.Allowance.left(now)
		if allowed == 0 {
			due = earlier(due, s.p.Allowance.again(now))
			later = append(later, s)
			continue
		}
		parts, left, more := s.take(min(room, max(most/(others+1), 1), allowed), bytes, len(l) == 0)
		s.p.Allowance.spend(now, parts, len(s.p.Prefix))
		o.charge(s, parts)
		if more {
			o.offer(s)
		}
		if len(parts) > 0 {
			l = append(l, cargo{s, parts})
			alone = window < enough
		} else if more {
			break // it does not fit
		}
		most, bytes = most-len(parts), left
	}
	return l, alone, due
}

// writesOf is how many writes of a Sync there are.
func (l load) writesOf(s *Sync) (n int) {
	for _, c := range l {
		if c.of == s {
			n += len(c.parts)
		}
	}
	return n
}

// putBack puts Syncs back that have not had their turn.
func (o *Outbox) putBack(later []*Sync) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range later {
		if _, runs := o.syncs[s]; runs && !s.ready {
			s.ready = true
			o.queue = append(o.queue, s)
		}
	}
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

// hasEnough tells whether there is enough for one more transaction.
func (o *Outbox) hasEnough(now time.Time) bool {
	o.mu.Lock()
	queue := slices.Clone(o.queue)
	o.mu.Unlock()
	n := 0
	for _, s := range queue {
		if n += min(s.backlog(), s.p.Allowance.left(now)); n >= enough {
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
	parts := []part{one}
	o.charge(due, parts)
	return load{{due, parts}}, next
}
