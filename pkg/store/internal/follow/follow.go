// Package follow lists the keys below a prefix of a kvstore and follows them, session after session: it resumes
// where that is proved to be safe, and lists again otherwise. It is the common part of the readers (pkg/store)
// and the writers (pkg/store/syncstore) of a prefix. It passes the keys and events to a [Keeper].
//
// One call of Run or Sessions at a time owns a [Follower]. The methods Status, Progress, Observe, Reach and
// ReadBy may be called from any goroutine.
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Keeper stores the keys that a follower reads. The run of the follower calls its methods, one at a time.
type Keeper interface {
	// Begin begins a list. It abandons a list that was begun and not done.
	Begin()
	// Page takes a part of a list, Apply a batch of events.
	Page(p kvstore.Page)
	Apply(b kvstore.Batch)
	// Done ends a complete list, which was read at this position.
	Done(at kvstore.Position)
	// Proofs returns questions whose answers show whether a server has the history that was followed; none when
	// that cannot be shown. Agrees reports whether the answer to one, which has names instead of keys, is the
	// expected one.
	Proofs() []Proof
	Agrees(p Proof, past kvstore.Past) bool
}

// Proof is a question about a past revision: the first keys that Prefix selects, and the number of all.
type Proof struct {
	Prefix string
	OneKey bool   // Prefix is one whole key, although the session's prefix is not
	Name   string // of that key; empty: all keys are meant
	Part   bool   // the answer may lack keys; else a server whose answer has not all of them has proved nothing
}

// Follower follows one prefix. It is ready to use with its exported fields set.
type Follower struct {
	Log *slog.Logger
	// Listed, which may be nil, is called when Status shows that a list is complete.
	Listed func()
	// Streams, which may be nil, is called when a stream is opened, and when it has ended.
	Streams func(open bool)
	// Incomplete, which may be nil, reports whether the keeper has refused keys because there was no room. A
	// later list may then return keys that a stream does not.
	Incomplete func() bool
	// Relist is how long a stream is followed before a list is made without another reason; 0 is never.
	Relist time.Duration

	// pos is the position up to which the keeper has everything below prefix; zero before the first list is
	// complete, and when the list has to be repeated.
	pos    kvstore.Position
	prefix string

	state
}

// ListAgain makes the next run begin with a list.
func (f *Follower) ListAgain() { f.pos = kvstore.Position{} }

// Reset forgets everything.
func (f *Follower) Reset() {
	f.ListAgain()
	f.state.reset()
}

// relistIncomplete is the time until another list when keys were refused because there was no room.
const relistIncomplete = 5 * time.Minute

var errAgain = errors.New("it is time to list again")

// Run follows the prefix until ctx ends or the session can no longer serve, and returns the reason.
func (f *Follower) Run(ctx context.Context, k Keeper, s Session) error {
	if s.Prefix != f.prefix {
		f.prefix, f.pos = s.Prefix, kvstore.Position{}
	}
	pause := newPauses()
	for {
		err := f.attempt(ctx, k, s, pause)
		why := err
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errAgain):
			f.ListAgain()
			continue
		case errors.Is(err, kvstore.ErrServerChanged), errors.Is(err, kvstore.ErrProtocol), errors.Is(err, kvstore.ErrClosed):
			return fmt.Errorf("following %s: %w", s.Prefix, err)
		case errors.Is(err, kvstore.ErrCompacted):
			f.Log.Debug("The known revision was compacted, listing again", "prefix", s.Prefix)
			f.ListAgain()
		case errors.Is(err, kvstore.ErrPermissionDenied):
			f.Log.Debug("Refused", "prefix", s.Prefix, "error", err)
			why = fmt.Errorf("%w; it is tried again within a minute", err)
		default:
			f.Log.Debug("Stream ended", "prefix", s.Prefix, "error", err)
		}
		f.set(func(st *Status) { st.Err = why })
		if err := waiting.Sleep(ctx, pause.after(err)); err != nil {
			return err
		}
	}
}

// attempt resumes or lists, then watches until the stream ends.
func (f *Follower) attempt(ctx context.Context, k Keeper, s Session, pause pauses) error {
	resumable, err := f.resumable(ctx, k, s)
	if err != nil {
		return err
	}
	if !resumable {
		if err := f.list(ctx, k, s); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stream, err := s.Client.Watch(ctx, s.Prefix, f.pos, s.Selects()...)
	if err != nil {
		return err
	}
	defer stream.Close()
	f.following(stream)
	defer f.following(nil)
	if f.Streams != nil {
		f.Streams(true)
		defer f.Streams(false)
	}
	if resumable {
		f.Log.Debug("Resumed", "prefix", s.Prefix, "revision", f.pos.Revision)
	}
	var relist *time.Timer
	relistAfter := func(d time.Duration) { // unless the timer is set; 0 is never
		if relist == nil && d > 0 {
			relist = time.AfterFunc(d, func() { end(errAgain) })
		}
	}
	defer func() {
		if relist != nil {
			relist.Stop()
		}
	}()
	relistAfter(f.Relist)
	for {
		if f.Incomplete != nil && f.Incomplete() {
			relistAfter(relistIncomplete)
		}
		err := s.waitRoom(ctx)
		if err == nil {
			err = f.receive(ctx, k, s, stream, pause)
		}
		if errors.Is(context.Cause(ctx), errAgain) {
			return errAgain
		}
		if err != nil {
			return err
		}
	}
}

// list reads the whole prefix at one revision. When it is complete, the keeper removes the keys that it did not
// have.
func (f *Follower) list(ctx context.Context, k Keeper, s Session) error {
	turn, err := takeTurn(ctx, s.Lists, s.Cluster)
	if err != nil {
		return err
	}
	defer turn.End()
	start := time.Now()
	// From the first page until the list is complete, the keeper has a mixture of old and new keys, perhaps of
	// two servers. No position describes it, so no stream may be resumed.
	f.ListAgain()
	f.listing(true)
	defer f.listing(false)
	k.Begin()
	at, err := s.list(ctx, turn, func(p kvstore.Page) error {
		k.Page(p)
		f.set(func(st *Status) {
			st.Read += len(p.Items)
			st.Total = st.Read + int(p.Left)
		})
		return nil
	})
	if err != nil {
		return err
	}
	k.Done(at)
	f.pos = at
	f.state.listed(start, at)
	if f.Listed != nil {
		f.Listed()
	}
	f.Log.Debug("Listed", "prefix", s.Prefix, "revision", at.Revision, "took", time.Since(start))
	return nil
}

// Sessions calls Run in one session of a client after another, until ctx ends or the client is closed.
func (f *Follower) Sessions(ctx context.Context, k Keeper, s Session) error {
	return waiting.UntilDone(ctx, retryMin, RetryMax, func() error {
		err := f.Run(ctx, k, s) // it returns no nil
		if errors.Is(err, kvstore.ErrClosed) {
			return backoff.Permanent(err)
		}
		return err
	}, func(err error, _ time.Duration) {
		f.Log.Debug("The session ended", "prefix", s.Prefix, "error", err)
		f.set(func(st *Status) { st.Err = err })
	})
}

// receive passes the next batch of a stream to the keeper, as soon as the bounds of the session allow it.
func (f *Follower) receive(ctx context.Context, k Keeper, s Session, stream kvstore.Stream, pause pauses) error {
	batch, err := stream.Recv()
	if err != nil {
		return err
	}
	pause.reset()
	if n := len(batch.Events); n > 0 {
		if err := f.pace(ctx, s.Events, n); err != nil {
			return err
		}
		if err := s.Batches.Take(ctx, s.Cluster); err != nil {
			return err
		}
		defer s.Batches.Give(s.Cluster)
	}
	k.Apply(batch)
	if !batch.Partial {
		f.pos = batch.At
	}
	f.advance(f.pos, len(batch.Events) > 0)
	return nil
}

func (f *Follower) pace(ctx context.Context, limit *rate.Limiter, n int) error {
	for limit != nil && n > 0 {
		some := min(n, max(limit.Burst(), 1))
		if !limit.AllowN(time.Now(), some) {
			paced := func(st *Status) { st.Paced = time.Now() }
			f.set(paced)
			if err := limit.WaitN(ctx, some); err != nil {
				return err
			}
			f.set(paced)
		}
		n -= some
	}
	return nil
}
