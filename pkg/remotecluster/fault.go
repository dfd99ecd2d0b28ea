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

// faultShown is for how long a fault is shown of a cluster that is well again.
const faultShown = time.Minute

// fault is the last end of a session that should not be: the server broke a rule of
// etcd's protocol, or this program made a mistake. Its zero value is none.
type fault struct {
	err error
	at  time.Time
}

// faultOf returns the fault that an error is; its zero value for none.
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

// report counts and logs a panic with its stack, once for each place in the code, and
// reports whether the error is one.
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

// contained makes a goroutine of f whose panic is logged and goes no further.
func (c *Cluster) contained(f func()) func() error {
	return func() error {
		c.report(guard.Run(func() error { f(); return nil }))
		return nil
	}
}

// maxPlaces bounds the places in the code that are remembered. Of panics at others one
// is logged in each otherPlaces.
const (
	maxPlaces   = 32
	otherPlaces = time.Minute
)

// places are where in the code panics were, whatever their texts: these may have
// numbers that differ each time.
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
