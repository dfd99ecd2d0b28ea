package remotecluster

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// faultShown is how long a fault is shown after the cluster works again.
const faultShown = time.Minute

// fault is the last end of a session that was caused by a bug: the server violated
// etcd's protocol, or this program panicked. Its zero value means none.
type fault struct {
	err error
	at  time.Time
}

// faultOf returns the fault of an error; the zero value if the error is not a fault.
func faultOf(err error, now time.Time) fault {
	if _, panicked := errors.AsType[*guard.Panic](err); panicked || errors.Is(err, kvstore.ErrProtocol) {
		return fault{err, now}
	}
	return fault{}
}

func (f fault) recent(now time.Time) bool { return f.err != nil && now.Sub(f.at) < faultShown }

func (f fault) reason() reason {
	code := codes.ProtocolBroken
	if _, panicked := errors.AsType[*guard.Panic](f.err); panicked {
		code = codes.InternalError
	}
	return because(code, "the session ended at %s: %v", at(f.at), f.err)
}

// report reports whether the error is a panic. It counts every panic, and logs it with
// its stack once for each place in the code.
func (c *Cluster) report(err error) bool {
	p, is := errors.AsType[*guard.Panic](err)
	if !is {
		return false
	}
	if c.note(panicked); c.places.isNew(p.Place) {
		c.Log.Error("Internal error: the agent starts the work on this cluster again",
			"code", string(codes.InternalError), "error", p.Error(), "stack", p.Stack)
	}
	return true
}

// contained returns a function for a goroutine that runs f. It logs a panic of f and
// does not pass it on.
func (c *Cluster) contained(f func()) func() error {
	return func() error {
		c.report(guard.Run(func() error { f(); return nil }))
		return nil
	}
}

// maxPlaces bounds how many places in the code are remembered. Of the panics at all other
// places, one is logged per otherPlaces.
const (
	maxPlaces   = 32
	otherPlaces = time.Minute
)

// places are the places in the code where panics occurred. The texts of the panics are not
// compared: they may have numbers that differ each time.
type places struct {
	mu     sync.Mutex
	known  map[string]struct{}
	others rate.Sometimes
}

func newPlaces() *places {
	return &places{known: make(map[string]struct{}), others: rate.Sometimes{Interval: otherPlaces}}
}

// isNew reports whether a panic at a place is to be logged.
func (s *places) isNew(place string) (yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.known[place]; known {
		return false
	}
	if len(s.known) < maxPlaces {
		s.known[place] = struct{}{}
		return true
	}
	s.others.Do(func() { yes = true })
	return yes
}
