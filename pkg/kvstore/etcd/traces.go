package etcd

import (
	"sync"
	"time"
)

// What is traced in one second: the first operations, and of those beyond one in tracedShare. Those
// that fail have an allowance of their own, so that they are not lost among the others.
const (
	tracedFirst = 50
	tracedShare = 1000
)

// Traces bounds the debug lines about operations of all sessions that share it:
// hundreds of remote clusters that are listed do thousands of operations a second.
// Its methods may be called by any goroutine.
type Traces struct {
	mu               sync.Mutex // guards what follows
	succeeded, other sample
}

// NewTraces returns what sessions share.
func NewTraces() *Traces { return new(Traces) }

// sample is one allowance.
type sample struct {
	second  time.Time // when the present one began
	seen    int       // in it
	omitted int       // since the last one that was traced
}

// admit reports whether an operation that has ended now is traced, and how many were
// not since the last one of its kind that was. Without Traces each is.
func (t *Traces) admit(now time.Time, failed bool) (omitted int, ok bool) {
	if t == nil {
		return 0, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.succeeded
	if failed {
		s = &t.other
	}
	if now.Sub(s.second) >= time.Second {
		s.second, s.seen = now, 0
	}
	if s.seen++; s.seen > tracedFirst && s.seen%tracedShare != 0 {
		s.omitted++
		return 0, false
	}
	omitted, s.omitted = s.omitted, 0
	return omitted, true
}
