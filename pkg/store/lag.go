package store

import (
	"slices"
	"time"
)

// Lag is how long the latest batches of events took from their receipt until they
// were visible; all zero when there was none.
type Lag struct {
	Median, P99, Most, Sum time.Duration
	Batches                int // of how many, at most [maxLags]
}

// maxLags is of how many batches a lag is.
const maxLags = 128

// lags remembers the lag of the latest batches. It is pure.
type lags struct {
	latest []time.Duration // a ring once it is full
	next   int
	known  Lag  // what lag returned last
	stale  bool // a batch was noted since
}

func (l *lags) note(lag time.Duration) {
	l.stale = true
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
	l.known = Lag{Median: sorted[n/2], P99: sorted[min(n-1, n*99/100)], Most: sorted[n-1], Batches: n}
	for _, one := range sorted {
		l.known.Sum += one
	}
	l.stale = false
	return l.known
}
