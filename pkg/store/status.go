package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Refusal is a key whose present value is refused.
type Refusal struct {
	Key string // the whole key
	Why string // what is wrong with the value, in words
}

// String says which key and why; it is empty for none.
func (r Refusal) String() string {
	if r == (Refusal{}) {
		return ""
	}
	return r.Key + ": " + r.Why
}

// Status describes a Watch at one moment.
type Status struct {
	// Synced: a complete list has been applied, and not been drained since.
	Synced bool
	// Listing: a list is under way.
	Listing bool
	// Read and Total are how many keys the list under way has brought so far, and
	// how many there were in all at its revision; both 0 before its first page, and
	// while none is under way.
	Read, Total int
	// Following: a stream is open. Followed: one has been, since the first complete list.
	Following, Followed bool
	// Count is the number of entries in force, Rejected that of keys whose
	// present value is refused, Rejections the same by reason.
	Count, Rejected int
	Rejections      map[wire.Reason]int
	// Example is one of the refused keys; its zero value is none.
	Example Refusal
	// Over says which limits of keys are exceeded; Paced is when events last had to
	// wait because there were more than the cluster may send, zero when they never had.
	Over  Over
	Paced time.Time
	// AsOf: the entries are known to equal the kvstore's as of this time; zero
	// when they never were (kvstore.md, Freshness).
	AsOf time.Time
	// LastEvent is when the last event arrived; zero when none has.
	LastEvent time.Time
	// Pending is how many entries a copy of ours has yet to take over; always 0
	// where nothing is copied.
	Pending int
	// Err is why there is no stream; nil while there is one, and before the
	// first failure.
	Err error
	// Lag is how long events took to become visible lately.
	Lag Lag
	// SyncDuration is how long the first complete list took.
	SyncDuration time.Duration
}

// followState is what a follower shows to others while it works. Counts and
// refusals are those of a Watch alone.
type followState struct {
	mu       sync.Mutex
	status   Status
	applied  kvstore.Position
	lists    int // how many were begun
	arrivals arrivals
	lags     lags
	stream   kvstore.Stream // nil when none is open
	// pending are probes whose revision has not been applied yet: the oldest
	// and the newest. Two suffice to make progress under any rate of probes.
	pending []kvstore.Probe
	// moved is closed when applied changes; nil when nobody waits.
	moved chan struct{}
}

// Status returns a copy of what is known.
func (w *Watch[T]) Status() Status { return w.state.snapshot() }

func (s *followState) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Lag = s.lags.lag()
	return st
}

// lagged notes how long a batch took to become visible.
func (s *followState) lagged(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lags.note(lag)
}

// Observe takes the result of a linearizable read on the session's connection.
// The entries equal the kvstore's as of the time before that read once
// everything up to its revision was applied. When that is not yet so, the
// stream is asked where it stands: revisions of other keys do not show in it.
func (w *Watch[T]) Observe(p kvstore.Probe) {
	if stream := w.state.observe(p); stream != nil {
		// An error ends the stream as well, which Run sees.
		_ = stream.RequestProgress()
	}
}

// askAgain is how often a stream is asked where it stands while somebody waits
// for it: the question may go unanswered (kvstore.md, Freshness).
const askAgain = 20 * time.Millisecond

// Reach waits until everything up to the position has been applied. It does not
// end before that, or with ctx, whose error says what was waited for.
func (w *Watch[T]) Reach(ctx context.Context, at kvstore.Position) error {
	return w.state.reach(ctx, at, anyLists, string(w.kind.Resource))
}

// anyLists stands for any number of lists.
const anyLists = -1

// errListed is why a position may never be applied: what is followed after a list
// may be another history.
var errListed = errors.New("a list has begun meanwhile")

// reach waits until a position has been applied to what. It ends with errListed
// when another number of lists than this has begun.
func (s *followState) reach(ctx context.Context, at kvstore.Position, lists int, what string) error {
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		is := s.standing()
		switch {
		case lists != anyLists && lists != is.lists:
			return fmt.Errorf("waiting until revision %d of %s is applied: %w", at.Revision, what, errListed)
		case is.applied.ClusterID == at.ClusterID && is.applied.Revision >= at.Revision:
			return nil
		case is.stream != nil:
			_ = is.stream.RequestProgress() // an error ends the stream as well, which Run sees
		}
		select {
		case <-is.moved:
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until revision %d of %s is applied: %w", at.Revision, what, ctx.Err())
		}
	}
}

// standing is how far a follower is: up to where everything has been applied, after
// how many lists, whom to ask, and what is closed when that changes.
type standing struct {
	applied kvstore.Position
	lists   int
	stream  kvstore.Stream // nil when none is open
	moved   <-chan struct{}
}

func (s *followState) standing() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return standing{s.applied, s.lists, s.stream, s.moved}
}

// move notes what has been applied, and wakes up who waits for it.
func (s *followState) move(to kvstore.Position) {
	s.applied = to
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

func (s *followState) observe(p kvstore.Probe) kvstore.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Err != nil || s.stream == nil {
		return nil // without a stream nobody has checked that this is still our history
	}
	s.pending = append(s.pending, p)
	if len(s.pending) > 2 {
		s.pending = append(s.pending[:1], p)
	}
	s.settle()
	if len(s.pending) == 0 {
		return nil
	}
	return s.stream
}

// settle advances AsOf by the probes that are covered by what was applied.
func (s *followState) settle() {
	keep := s.pending[:0]
	for _, p := range s.pending {
		switch {
		case p.Head.ClusterID != s.applied.ClusterID:
		case p.Head.Revision > s.applied.Revision:
			keep = append(keep, p)
		case p.At.After(s.status.AsOf):
			s.status.AsOf = p.At
		}
	}
	s.pending = keep
}

func (s *followState) advance(to kvstore.Position, events bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(to)
	if events {
		s.status.LastEvent = time.Now()
		s.arrivals.batch(to.Revision, s.status.LastEvent)
	}
	s.settle()
}

// listed notes a complete list that was begun at start: its contents are not
// older than that.
func (s *followState) listed(start time.Time, at kvstore.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Synced {
		s.status.Synced, s.status.SyncDuration = true, time.Since(start)
	}
	s.move(at)
	s.arrivals.list(at.Revision, time.Now())
	s.pending, s.status.AsOf = nil, start
}

// listing notes the begin and the end of a list. From its begin on no probe
// proves anything, until the list is complete.
func (s *followState) listing(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Read, s.status.Total = 0, 0
	if s.status.Listing = now; now {
		s.lists++
		s.move(kvstore.Position{})
		s.arrivals = arrivals{} // it may be another history
		s.pending = nil
	}
}

// read notes a page of the list under way, and how many keys come after it.
func (s *followState) read(n int, left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Read += n
	s.status.Total = s.status.Read + int(left)
}

func (s *followState) following(stream kvstore.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.status.Following, s.pending = stream, stream != nil, nil
	if stream != nil {
		s.status.Followed, s.status.Err = true, nil
	}
}

func (s *followState) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Err = err
}

// counts notes the numbers; refused gives the rest, when there is any. It tells
// whether another number of keys is refused than before.
func (s *followState) counts(n, rejected int, over Over, refused func() (map[wire.Reason]int, Refusal)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := rejected != s.status.Rejected
	if rejected > 0 || s.status.Rejected > 0 {
		s.status.Rejections, s.status.Example = refused()
	}
	s.status.Count, s.status.Rejected, s.status.Over = n, rejected, over
	return changed
}

// paced notes that events wait, and that they have waited.
func (s *followState) paced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Paced = time.Now()
}

// readSoFar is how many keys the list under way has brought.
func (s *followState) readSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Read
}

func (s *followState) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.applied, s.pending = Status{}, kvstore.Position{}, nil
}
