package etcd

import (
	"sync"
	"time"
)

// The operations that are traced in one second: the first tracedFirst, and after them one in
// tracedShare. Failed operations are counted separately, so that they are not lost among the others.
const (
	tracedFirst = 50
	tracedShare = 1000
)

// Traces bounds the debug lines about operations of all sessions that share it: lists
// of hundreds of remote clusters make thousands of operations per second. Its methods
// may be called by any goroutine.
type Traces struct {
	mu               sync.Mutex // guards the fields below
	succeeded, other sample
}

// NewTraces returns a Traces, for sessions to share.
func NewTraces() *Traces { return new(Traces) }

// sample counts the operations of one kind, failed or not.
type sample struct {
	second  time.Time // the start of the current second
	seen    int       // operations in this second
	omitted int       // operations since the last traced one
}

// admit reports whether an operation that ended at now is traced, and returns how many of
// its kind were not traced since the last traced one. With nil Traces every operation is traced.
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
