package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Refusal is a key whose present value is refused.
type Refusal struct {
	Key string // the whole key
	Why string // error text of the refusal
}

// String returns the key and the reason; empty for none.
func (r Refusal) String() string {
	if r == (Refusal{}) {
		return ""
	}
	return r.Key + ": " + r.Why
}

// FollowStatus is the part of a [Status] that describes how far a prefix is followed.
type FollowStatus = follow.Status

// Status describes a Watch at one moment.
type Status struct {
	FollowStatus
	// Count is the number of entries in force, Rejected the number of keys whose present value is refused,
	// Rejections these numbers by reason.
	Count, Rejected int
	Rejections      map[wire.Reason]int
	// Example is one of the refused keys; its zero value is none.
	Example Refusal
	Over    Over // which limits of keys are exceeded
	// Held is the time until which the entries equal the keys, when deletions are held back ([Delayed]). AsOf may be
	// later. Zero: none are held back.
	Held time.Time
	// Pending is the number of entries that our copy has not taken over yet; always 0 where nothing is copied.
	Pending int
	// Lag is how long recent events took to become visible.
	Lag Lag
}

// KnownAsOf returns the last time at which the entries are known to equal the keys; zero when they were never confirmed.
func (s *Status) KnownAsOf() time.Time {
	if !s.Held.IsZero() && s.Held.Before(s.AsOf) {
		return s.Held
	}
	return s.AsOf
}

// counts has the numbers of the values that a Watch knows, and the lags of its events.
type counts struct {
	mu     sync.Mutex
	status Status // guarded by mu; without FollowStatus and Lag
	lags   lags   // guarded by mu
}

// Status returns a copy of the present status.
func (w *Watch[T]) Status() Status {
	f := w.follower.Status() // read first, so that the counts include all that is synced
	w.counts.mu.Lock()
	defer w.counts.mu.Unlock()
	st := w.counts.status
	st.FollowStatus = f
	st.Lag = w.counts.lags.lag()
	return st
}

// Observe takes the result of a linearizable read on the session's connection. Once everything up to its
// revision has been applied, the entries equal the kvstore's as of the time before that read.
func (w *Watch[T]) Observe(p kvstore.Probe) { w.follower.Observe(p) }

// Reach waits until everything up to the position has been applied, or until ctx ends. The error wraps that of
// ctx and names the awaited revision.
func (w *Watch[T]) Reach(ctx context.Context, at kvstore.Position) error {
	return w.follower.Reach(ctx, at, follow.AnyLists, string(w.kind.Resource))
}

func (c *counts) noteLag(lag time.Duration, events int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags.note(lag, events)
}

// update stores the numbers; refused returns the reasons and an example. It reports whether the number of
// refused keys has changed.
func (c *counts) update(n, rejected int, over Over, refused func() (map[wire.Reason]int, Refusal)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := rejected != c.status.Rejected
	if changed || rejected > 0 {
		c.status.Rejections, c.status.Example = refused()
	}
	c.status.Count, c.status.Rejected, c.status.Over = n, rejected, over
	return changed
}

func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = Status{}
}

// Found describes one key of a [Watch].
type Found struct {
	Key      string // the whole key
	Revision int64  // the mod revision of the value seen last
	// Read is the latest possible time at which that value was read; zero when it is not remembered.
	Read time.Time
	// InForce reports whether a value of the key is in force. It may be the previous value, when the last one
	// is refused for Reason, with the error text Why.
	InForce bool
	Reason  wire.Reason // empty: it is not refused
	Why     string      // empty when it is not remembered
}

// Find returns a key by its name below the prefix; false when the kvstore is not known to have it. Any
// goroutine may call it; it waits while a page or a batch is being decoded.
func (w *Watch[T]) Find(name string) (Found, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	p, known := w.set.records.FindString(name)
	if !known {
		return Found{}, false
	}
	r := w.set.records.At(p)
	return Found{
		Key: w.key(name), Revision: r.Rev, Read: w.follower.ReadBy(r.Rev),
		InForce: r.Obj != nil, Reason: w.set.rejected[name].reason, Why: w.set.examples[name],
	}, true
}

// Lag is how long the latest batches of events took from their receipt until they
// were visible; all zero when there was none.
type Lag struct {
	Median, P99, Most, Sum time.Duration
	Batches                int // number of these batches, at most [maxLags]
	// Events is the number of events that have become visible, in all batches since the watch began.
	Events uint64
}

// maxLags is the number of batches from which a lag is computed.
const maxLags = 128

// lags remembers the lag of the latest batches. It is pure.
type lags struct {
	latest []time.Duration // a ring once it is full
	next   int
	events uint64
	known  Lag  // what lag returned last
	stale  bool // a batch was noted since
}

func (l *lags) note(lag time.Duration, events int) {
	l.stale = true
	l.events += uint64(events) //nolint:gosec // not negative
	if len(l.latest) < maxLags {
		l.latest = append(l.latest, lag)
		return
	}
	l.latest[l.next] = lag
	l.next = (l.next + 1) % maxLags
}

func (l *lags) lag() Lag {
	if !l.stale {
		return l.known
	}
	n := len(l.latest)
	sorted := slices.Sorted(slices.Values(l.latest))
	l.known = Lag{Median: sorted[n/2], P99: sorted[min(n-1, n*99/100)], Most: sorted[n-1], Batches: n, Events: l.events}
	for _, one := range sorted {
		l.known.Sum += one
	}
	l.stale = false
	return l.known
}
