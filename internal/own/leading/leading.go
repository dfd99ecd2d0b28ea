// Package leading has the state of a process that leads in terms, and is a standby between them. Of all processes
// that do the same work for a cluster, one leads: [kvstore.LeadAgain] elects it. Both leaders have this state, operate
// and mirror.
//
// Concurrency: all methods may be called by any goroutine, at any time.
package leading

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Params are the parameters of a Leader.
type Params[T any] struct {
	Writer kvstore.Writer
	// Lock is the path of the lock whose holder leads.
	Lock string
	// Begin returns the state of a new term, and Run does the work of the term until ctx ends.
	Begin func(*kvstore.Lock) *T
	Run   func(context.Context, *T) error
	// Unready returns what the term has not written yet, by subject: the process is ready when nothing is left.
	Unready func(*T) map[string]string
	// Turn is called with the term that ends, and with nil when one begins; it may be nil. It must not call the Leader.
	Turn func(ended *T)
	// Complete is called when a term has written everything; it may be nil.
	Complete func()
	// Standby is the reason why a process is not ready that does not lead yet.
	Standby string
	Log     *slog.Logger
}

// Leader is the state. T is that of a term.
type Leader[T any] struct {
	p       Params[T]
	started time.Time

	mu        sync.Mutex
	term      *T            // guarded by mu; nil while another process leads, or none
	began     time.Time     // guarded by mu; the term
	bootstrap time.Duration // guarded by mu; of the term, until everything was written; 0: it is not
	ready     bool          // guarded by mu; never becomes false again
}

// New returns the state of a process that does not lead yet.
func New[T any](p Params[T]) *Leader[T] { return &Leader[T]{p: p, started: time.Now()} }

// Run does the work whenever this process leads, until ctx ends. Nothing is withdrawn then.
func (l *Leader[T]) Run(ctx context.Context) error {
	return kvstore.LeadAgain(ctx, l.p.Writer, l.p.Lock, l.p.Log, func(ctx context.Context, lock *kvstore.Lock) error {
		t := l.p.Begin(lock)
		l.enter(t)
		defer l.enter(nil)
		return l.p.Run(ctx, t)
	})
}

// enter changes the term.
func (l *Leader[T]) enter(t *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p.Turn != nil {
		l.p.Turn(l.term)
	}
	l.term, l.began, l.bootstrap = t, time.Now(), 0
}

// Written records that the present term has written everything that was known at its start, and returns how long that
// took.
func (l *Leader[T]) Written() time.Duration {
	l.mu.Lock()
	took := time.Since(l.began)
	l.bootstrap, l.ready = took, true
	l.mu.Unlock()
	if l.p.Complete != nil {
		l.p.Complete()
	}
	return took
}

// With calls f with the present term, nil while this process does not lead. The term does not end before f returns.
func (l *Leader[T]) With(f func(*T)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.term)
}

// Term returns the present term; nil while this process does not lead.
func (l *Leader[T]) Term() (now *T) {
	l.With(func(t *T) { now = t })
	return now
}

// Leads reports whether this process leads.
func (l *Leader[T]) Leads() bool { return l.Term() != nil }

// Bootstrap is the time from the start of this term until everything was written; 0 before that, and while another
// process leads.
func (l *Leader[T]) Bootstrap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bootstrap
}

// standbyAfter is the time after which a process that waits to lead is ready (wire.md §3.7).
const standbyAfter = 10 * time.Second

// Ready reports whether everything is written that was known at the start, or another process leads, or the term
// waits for nothing more. Once true it stays true. The reasons name the missing parts.
func (l *Leader[T]) Ready() (bool, map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ready {
		if reasons := l.unready(); len(reasons) > 0 {
			return false, reasons
		}
		l.ready = true
	}
	return true, nil
}

// unready returns what readiness waits for. The lock is held.
func (l *Leader[T]) unready() map[string]string {
	switch st := l.p.Writer.Status(); {
	case l.term != nil:
		return l.p.Unready(l.term)
	case !st.Connected:
		return map[string]string{"own kvstore": "not connected: " + cmp.Or(st.LastError, "connecting")}
	case time.Since(l.started) >= standbyAfter:
		return nil
	}
	return map[string]string{"election": fmt.Sprintf("%s: ready as a standby after %s", l.p.Standby, standbyAfter)}
}
