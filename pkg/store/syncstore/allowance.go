package syncstore

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how fast one owner's writes may come. 0 is no bound, in every field.
type Rate struct {
	Writes int   // a second, puts and deletions
	Bytes  int64 // a second, of keys and values that are put
	// WritesAtOnce and BytesAtOnce are how many may come at once, before the rate
	// counts: they are regained at that rate.
	WritesAtOnce int
	BytesAtOnce  int64
}

// Allowance keeps the writes of one owner within a rate, so that the owner's
// changes do not use up the kvstore's limit of operations, and the space of its history. A nil one
// bounds nothing. It may be used by several Syncs of one outbox.
type Allowance struct {
	writes, bytes *rate.Limiter
}

// NewAllowance returns one of which nothing is used yet.
func NewAllowance(r Rate) *Allowance {
	limiter := func(limit, atOnce float64) *rate.Limiter {
		if limit == 0 {
			return rate.NewLimiter(rate.Inf, 0)
		}
		return rate.NewLimiter(rate.Limit(limit), int(max(atOnce, limit)))
	}
	return &Allowance{
		writes: limiter(float64(r.Writes), float64(r.WritesAtOnce)), bytes: limiter(float64(r.Bytes), float64(r.BytesAtOnce)),
	}
}

func (a *Allowance) left(now time.Time) int {
	switch {
	case a == nil:
		return math.MaxInt32
	case tokens(a.bytes, now) < 1:
		return 0
	}
	return int(tokens(a.writes, now))
}

func tokens(l *rate.Limiter, now time.Time) float64 {
	if l.Limit() == rate.Inf {
		return math.MaxInt32
	}
	return min(max(l.TokensAt(now), 0), math.MaxInt32)
}

// oftenAtMost is how often a used up allowance is looked at, so that small transactions are few.
const oftenAtMost = 100 * time.Millisecond

func (a *Allowance) again(now time.Time) time.Time {
	wait := oftenAtMost
	for _, l := range []*rate.Limiter{a.writes, a.bytes} {
		if l.Limit() != rate.Inf {
			wait = max(wait, time.Duration((1-l.TokensAt(now))/float64(l.Limit())*float64(time.Second)))
		}
	}
	return now.Add(wait)
}

// spend counts writes. The bytes of the last ones may be more than is left: later ones
// wait for that.
func (a *Allowance) spend(now time.Time, parts []part, prefix int) {
	if a == nil {
		return
	}
	size := 0
	for i := range parts {
		if !parts[i].deletes {
			size += parts[i].size() + prefix
		}
	}
	reserve(a.writes, now, len(parts))
	reserve(a.bytes, now, size)
}

func reserve(l *rate.Limiter, now time.Time, n int) {
	if l.Limit() != rate.Inf {
		l.ReserveN(now, min(n, l.Burst()))
	}
}

// earlier is the earlier one of two moments; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
