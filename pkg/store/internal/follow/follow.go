// Package follow lists the keys below a prefix of a kvstore and follows them, session
// after session: it resumes where that is proved to be safe, and lists again otherwise.
// It is what the readers (pkg/store) and the writers (pkg/store/syncstore) of a prefix
// have in common. What it learns goes to a [Keeper].
//
// One call of Run or Sessions at a time owns a [Follower]. The methods that only ask
// (Status, Progress, Observe, Reach, ReadBy) may be called from any goroutine.
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

// Keeper keeps what a follower learns. The run of the follower calls it, one method at a time.
type Keeper interface {
	// Begin begins a list. One that was begun and not done is thereby given up.
	Begin()
	// Page takes a part of a list, Apply a batch of events.
	Page(p kvstore.Page)
	Apply(b kvstore.Batch)
	// Done ends a complete list, which was made at this position.
	Done(at kvstore.Position)
	// Proof says what to ask a server to learn whether its history is the one that was followed;
	// not ok: nothing proves it. Agrees reports whether the answer, with the names of the keys, is
	// the right one.
	Proof() (p Proof, ok bool)
	Agrees(p Proof, past kvstore.Past) bool
}

// Proof is a question about the past: how the first keys were that Prefix
// selects, from the key From on. Name is that key's.
type Proof struct {
	Prefix, From, Name string
	OneKey             bool // Prefix is one whole key, although that of the session is none
}

// Follower follows one prefix. It is ready to use with its exported fields set.
type Follower struct {
	Log *slog.Logger
	// Listed, which may be nil, is called when Status shows that a list is complete.
	Listed func()
	// Streams, which may be nil, is called when a stream is opened, and when it has ended.
	Streams func(open bool)
	// Incomplete, which may be nil, reports whether the keeper has refused keys for want of
	// room, so that a later list may bring what a stream does not.
	Incomplete func() bool
	// Relist is after how long of following a list is made although nothing demands it; 0 is never.
	Relist time.Duration

	// pos: everything below prefix up to here is with the keeper; zero before
	// the first list is complete, and when it has to be repeated.
	pos    kvstore.Position
	prefix string

	state
}

// ListAgain has the next run make a list.
func (f *Follower) ListAgain() { f.pos = kvstore.Position{} }

// Reset forgets everything.
func (f *Follower) Reset() {
	f.ListAgain()
	f.state.reset()
}

// relistIncomplete is after how long a list is made again when keys were refused for want of room.
const relistIncomplete = 5 * time.Minute

var errAgain = errors.New("it is time to list again")

// Run follows the prefix until ctx ends or the session cannot serve any more, and says why.
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
	relistAfter := func(d time.Duration) { // unless it is set; 0 is never
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

// list reads the whole prefix at one revision. When it is complete, the keeper removes
// what it did not have.
func (f *Follower) list(ctx context.Context, k Keeper, s Session) error {
	turn, err := takeTurn(ctx, s.Lists, s.Cluster)
	if err != nil {
		return err
	}
	defer turn.End()
	start := time.Now()
	// From the first page until the list is complete the keeper has a mixture, of
	// two servers perhaps: no position describes it, and nothing may be resumed.
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

// Sessions runs in one session of a client after another, until ctx ends or the client is closed.
func (f *Follower) Sessions(ctx context.Context, k Keeper, s Session) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, RetryMax
	for {
		started := time.Now()
		err := f.Run(ctx, k, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kvstore.ErrClosed):
			return err
		}
		f.Log.Debug("The session ended", "prefix", s.Prefix, "error", err)
		f.set(func(st *Status) { st.Err = err })
		if time.Since(started) > RetryMax {
			pause.Reset()
		}
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// receive gives the next batch of a stream to the keeper, when the bounds of the session allow it.
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
