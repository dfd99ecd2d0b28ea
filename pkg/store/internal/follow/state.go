package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Status describes a [Follower] at one moment.
type Status struct {
	Synced  bool // a complete list has been applied, and not been drained since
	Listing bool // a list is under way
	// Read is the number of keys that the list under way has returned so far, Total the number of all keys at
	// its revision. Both are 0 before its first page, and while no list is under way.
	Read, Total int
	// Following: a stream is open. Followed: a stream has been open since the first complete list.
	Following, Followed bool
	// Paced is when events last had to wait because there were more than the cluster may send; zero when they
	// never did.
	Paced time.Time
	// AsOf: the entries are known to equal the kvstore's as of this time; zero when this was never known
	// (kvstore.md §2.3).
	AsOf time.Time
	// Every is the interval at which AsOf advances while nothing changes, where the session does not define it;
	// else 0.
	Every        time.Duration
	LastEvent    time.Time     // when the last event arrived; zero when none has
	Err          error         // why there is no stream; nil while there is one, and before the first failure
	SyncDuration time.Duration // of the first complete list
}

// state is the part of a follower that other goroutines may read while it runs.
type state struct {
	mu       sync.Mutex
	status   Status
	applied  kvstore.Position
	lists    int // number of begun lists
	arrivals arrivals
	stream   kvstore.Stream // nil when none is open
	// pending are probes whose revision has not been applied yet: the oldest
	// and the newest. Two suffice to make progress under any rate of probes.
	pending  []kvstore.Probe
	advanced chan struct{} // closed when applied changes; nil when no goroutine waits
}

// Status returns a copy of the present status.
func (s *state) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// ReadBy returns the latest possible time at which a revision was read; zero when it was not read, or the time
// is not remembered.
func (s *state) ReadBy(revision int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrivals.of(revision)
}

// Observe takes the result of a linearizable read on the session's connection. Once everything up to its
// revision has been applied, the entries equal the kvstore's as of the time before that read. Until then
// Observe requests the progress of the stream, which does not report the revisions of other keys.
func (s *state) Observe(p kvstore.Probe) {
	if stream := s.observe(p); stream != nil {
		_ = stream.RequestProgress() // an error ends the stream as well, which Run sees
	}
}

// askAgain is the interval of the progress requests to a stream while a caller waits: a request may remain
// unanswered (kvstore.md §2.3).
const askAgain = 20 * time.Millisecond

// AnyLists stands for any number of lists.
const AnyLists = -1

// errListed is the error when a position may never be applied: after another list, the followed history may be
// another one.
var errListed = errors.New("another list has started")

// Reach waits until everything up to a position has been applied; what names the keys in the error. The error
// wraps that of ctx, or errListed when the number of begun lists is no longer lists. With AnyLists that number
// is not checked.
func (s *state) Reach(ctx context.Context, at kvstore.Position, lists int, what string) error {
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		is := s.Progress()
		switch {
		case lists != AnyLists && lists != is.Lists:
			return fmt.Errorf("waiting until revision %d of %s is applied: %w", at.Revision, what, errListed)
		case is.Applied.ClusterID == at.ClusterID && is.Applied.Revision >= at.Revision:
			return nil
		case is.stream != nil:
			_ = is.stream.RequestProgress() // an error ends the stream as well, which Run sees
		}
		select {
		case <-is.advanced:
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until revision %d of %s is applied: %w", at.Revision, what, ctx.Err())
		}
	}
}

// Progress is the position up to which everything has been applied, and the number of begun lists.
type Progress struct {
	Applied  kvstore.Position
	Lists    int
	stream   kvstore.Stream  // nil when none is open
	advanced <-chan struct{} // closed when Applied has changed
}

// Progress returns the progress of the follower.
func (s *state) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.advanced == nil {
		s.advanced = make(chan struct{})
	}
	return Progress{s.applied, s.lists, s.stream, s.advanced}
}

// setApplied stores the position up to which everything has been applied, and wakes the goroutines that wait
// for it. The lock is held.
func (s *state) setApplied(to kvstore.Position) {
	s.applied = to
	if s.advanced != nil {
		close(s.advanced)
		s.advanced = nil
	}
}

func (s *state) observe(p kvstore.Probe) kvstore.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Err != nil || s.stream == nil {
		return nil // without a stream it is not verified that this is still our history
	}
	s.pending = append(s.pending, p)
	if len(s.pending) > 2 {
		s.pending = append(s.pending[:1], p)
	}
	s.updateAsOf()
	if len(s.pending) == 0 {
		return nil
	}
	return s.stream
}

// updateAsOf advances AsOf to the times of the probes whose revisions have been applied.
func (s *state) updateAsOf() {
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

func (s *state) advance(to kvstore.Position, events bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setApplied(to)
	if events {
		s.status.LastEvent = time.Now()
		s.arrivals.batch(to.Revision, s.status.LastEvent)
	}
	s.updateAsOf()
}

// listed notes a complete list. Its contents are not older than its start.
func (s *state) listed(start time.Time, at kvstore.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Synced {
		s.status.Synced, s.status.SyncDuration = true, time.Since(start)
	}
	s.setApplied(at)
	s.arrivals.list(at.Revision, time.Now())
	s.pending, s.status.AsOf = nil, start
}

// listing notes the start or the end of a list. During a list no probe proves anything.
func (s *state) listing(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Read, s.status.Total = 0, 0
	if s.status.Listing = now; now {
		s.lists++
		s.setApplied(kvstore.Position{})
		s.arrivals = arrivals{} // it may be another history
		s.pending = nil
	}
}

func (s *state) following(stream kvstore.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.status.Following, s.pending = stream, stream != nil, nil
	if stream != nil {
		s.status.Followed, s.status.Err = true, nil
	}
}

func (s *state) set(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

func (s *state) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.applied, s.pending = Status{}, kvstore.Position{}, nil
}

// arrivals remembers when revisions arrived, in little memory: those of the last list and of the latest
// batches. It is pure.
type arrivals struct {
	listed arrival
	// latest are batches after the list, in ascending order of revisions; the oldest ones are dropped.
	latest []arrival
}

// arrival is a time at which everything up to the revision had arrived.
type arrival struct {
	revision int64
	at       time.Time
}

// maxArrivals bounds the batches that are remembered for one prefix. For an older batch the time of the oldest
// remembered one is returned, which is later.
const maxArrivals = 32

// list replaces everything by a complete list at a revision.
func (a *arrivals) list(revision int64, at time.Time) {
	*a = arrivals{listed: arrival{revision, at}, latest: a.latest[:0]}
}

func (a *arrivals) batch(revision int64, at time.Time) {
	if len(a.latest) == maxArrivals {
		a.latest = slices.Delete(a.latest, 0, maxArrivals/2) // half at a time, so that this is rare
	}
	a.latest = append(a.latest, arrival{revision, at})
}

// of returns the latest possible time at which a revision arrived; zero when it has not arrived, or the time is
// not remembered.
func (a *arrivals) of(revision int64) time.Time {
	if revision <= a.listed.revision {
		return a.listed.at
	}
	i, _ := slices.BinarySearchFunc(a.latest, revision, func(one arrival, revision int64) int {
		return int(max(-1, min(1, one.revision-revision)))
	})
	if i == len(a.latest) {
		return time.Time{}
	}
	return a.latest[i].at
}
