package syncstore

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Rate bounds the rate of one owner's writes. In each field 0 is no bound.
type Rate struct {
	Writes int   // per second: puts and deletions
	Bytes  int64 // per second: keys and values of puts
	// WritesAtOnce and BytesAtOnce are the bursts: the amounts that may be written at once, before the rate
	// applies. They are regained at that rate.
	WritesAtOnce int
	BytesAtOnce  int64
}

// Allowance keeps the writes of one owner within a rate, so that the owner's
// changes do not use up the kvstore's limit of operations, and the space of its history. A nil one
// bounds nothing. It may be used by several Syncs of one outbox.
type Allowance struct {
	writes, bytes *rate.Limiter
}

// NewAllowance returns an unused allowance with this rate.
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

// oftenAtMost is the shortest interval at which a used up allowance is checked, so that there are few small
// transactions.
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

// spend counts writes. Their bytes may exceed the remaining allowance: later writes then wait longer.
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

// earlier returns the earlier of two times; a zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
