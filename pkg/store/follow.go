package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// follower lists the keys below a prefix and follows them, session after
// session: it resumes where it can and lists again where it must. What it learns
// goes to a keeper. One run at a time owns it, but for its state.
type follower struct {
	log *slog.Logger
	// pos: everything below prefix up to here is with the keeper; zero before
	// the first list is complete, and when it has to be repeated.
	pos    kvstore.Position
	prefix string
	// again is after how long of following a list is made although nothing
	// demands it; 0 is never.
	again time.Duration

	state followState
}

// lacksAgain is after how long a list is made again when keys were not taken for
// want of room.
const lacksAgain = 5 * time.Minute

// ErrListTooLong ends a list that takes longer than [Limits].List.
var ErrListTooLong = errors.New("the list takes longer than it may")

// keeper keeps what a follower learns. The run of the follower calls it, one
// method at a time.
type keeper interface {
	// begin begins a list. One that was begun and not done is thereby given up.
	begin()
	// page takes a part of a list, apply a batch of events.
	page(p kvstore.Page)
	apply(b kvstore.Batch)
	// done ends a complete list, which was made at this position. listed is
	// called when everybody can see that.
	done(at kvstore.Position)
	listed()
	// follows tells whether a stream is open, after all that the keeper has.
	follows(now bool)
	// lacks tells whether there are keys that the keeper did not take for want of
	// room, so that a later list may bring what a stream does not.
	lacks() bool
	// proof says what to ask a server to learn whether its history is the one
	// that was followed; not ok: nothing proves it. agrees tells
	// whether the answer is the right one.
	proof() (p proof, ok bool)
	agrees(p proof, past kvstore.Past) bool
}

// proof is a question about the past: how the first keys were that prefix
// selects, from the key from on. name is that key's.
type proof struct{ prefix, from, name string }

// retryMax bounds the pause between two tries to resume a broken stream within
// one session. The session's own watchdog gives up long before it matters.
const retryMax = 5 * time.Second

// refusedMax bounds the same where our user may not read the prefix: only somebody who
// changes the rights helps, and the next session asks at once. The jitter, half of it,
// makes it a minute.
const refusedMax = 40 * time.Second

// pauses are those between two tries within one session: they grow, those after a
// refusal for longer.
type pauses struct{ broken, refused *backoff.ExponentialBackOff }

func newPauses() pauses {
	p := pauses{backoff.NewExponentialBackOff(), backoff.NewExponentialBackOff()}
	p.broken.InitialInterval, p.broken.MaxInterval = 50*time.Millisecond, retryMax
	p.refused.InitialInterval, p.refused.MaxInterval = p.broken.InitialInterval, refusedMax
	return p
}

// after is the pause after an error. Only refusals in a row make those after them grow.
func (p pauses) after(err error) time.Duration {
	if errors.Is(err, kvstore.ErrPermissionDenied) {
		return p.refused.NextBackOff()
	}
	p.refused.Reset()
	return p.broken.NextBackOff()
}

// reset begins anew: a stream has brought something.
func (p pauses) reset() {
	p.broken.Reset()
	p.refused.Reset()
}

// errAgain ends a stream because it is time to list again.
var errAgain = errors.New("it is time to list again")

// run follows the prefix until ctx ends or the session cannot serve any more,
// and says why.
func (f *follower) run(ctx context.Context, k keeper, s Session) error {
	if s.Prefix != f.prefix {
		f.prefix, f.pos = s.Prefix, kvstore.Position{}
	}
	pause := newPauses()
	for {
		err := f.attempt(ctx, k, s, pause)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errAgain):
			f.pos = kvstore.Position{}
			continue
		case errors.Is(err, kvstore.ErrServerChanged), errors.Is(err, kvstore.ErrProtocol), errors.Is(err, kvstore.ErrClosed):
			return fmt.Errorf("following %s: %w", s.Prefix, err)
		case errors.Is(err, kvstore.ErrCompacted):
			f.log.Debug("Compacted beyond what is known, listing again", "prefix", s.Prefix)
			f.pos = kvstore.Position{}
			f.state.broken(err)
		case errors.Is(err, kvstore.ErrPermissionDenied):
			f.log.Debug("Refused", "prefix", s.Prefix, "error", err)
			f.state.broken(fmt.Errorf("%w; it is tried again within a minute", err))
		default:
			f.log.Debug("Stream ended", "prefix", s.Prefix, "error", err)
			f.state.broken(err)
		}
		if err := waiting.Sleep(ctx, pause.after(err)); err != nil {
			return err
		}
	}
}

// attempt resumes or lists, then watches until the stream ends.
func (f *follower) attempt(ctx context.Context, k keeper, s Session, pause pauses) error {
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
	stream, err := s.Client.Watch(ctx, s.Prefix, f.pos)
	if err != nil {
		return err
	}
	defer stream.Close()
	f.state.following(stream)
	defer f.state.following(nil)
	k.follows(true)
	defer k.follows(false)
	if resumable {
		f.log.Debug("Resumed", "prefix", s.Prefix, "revision", f.pos.Revision)
	}
	again := relist{end: func() { end(errAgain) }}
	defer again.stop()
	again.after(f.again)
	for {
		if k.lacks() {
			again.after(lacksAgain)
		}
		batch, err := s.recv(ctx, stream)
		if err == nil {
			pause.reset()
			err = f.take(ctx, k, s, batch)
		}
		if errors.Is(context.Cause(ctx), errAgain) {
			return errAgain
		}
		if err != nil {
			return err
		}
	}
}

// relist ends a stream after a while, once.
type relist struct {
	end   func()
	timer *time.Timer
}

// after sets the time, unless there is one; 0 is never.
func (r *relist) after(d time.Duration) {
	if r.timer == nil && d > 0 {
		r.timer = time.AfterFunc(d, r.end)
	}
}

func (r *relist) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// take gives a batch to the keeper, at the pace that the cluster may have and when
// it is its turn.
func (f *follower) take(ctx context.Context, k keeper, s Session, batch kvstore.Batch) error {
	if n := len(batch.Events); n > 0 {
		if err := f.pace(ctx, s.Limits.Events, n); err != nil {
			return err
		}
		if s.Batches != nil {
			if err := s.Batches.Take(ctx, s.Expect.Cluster); err != nil {
				return err
			}
			defer s.Batches.Give(s.Expect.Cluster)
		}
	}
	k.apply(batch)
	if !batch.Partial {
		f.pos = batch.At
	}
	f.state.advance(f.pos, len(batch.Events) > 0)
	return nil
}

// pace waits until so many events may be taken.
func (f *follower) pace(ctx context.Context, limit *rate.Limiter, n int) error {
	for limit != nil && n > 0 {
		some := min(n, max(limit.Burst(), 1))
		if !limit.AllowN(time.Now(), some) {
			f.state.paced()
			if err := limit.WaitN(ctx, some); err != nil {
				return err
			}
			f.state.paced()
		}
		n -= some
	}
	return nil
}

// proofKeys is how many keys must agree before a stream is resumed.
const proofKeys = 64

// resumable tells whether the position belongs to the history of the etcd that
// answers. Its cluster ID and a revision that was reached do not prove that: a
// server that was wiped, or restored from a backup, under its old token has the
// same cluster ID, and in time it overtakes every position (kvstore.md,
// ListAndWatch). What must hold for a stream to bring everything is that at the
// position the server had what the keeper has. So it is asked, in one request,
// what it had then: up to proofKeys keys with their revisions and values, and how
// many there were.
//
// For a keeper of no more keys than that this compares everything, so it is proof
// whatever happened to the server. For a larger one the comparison begins at the
// key that was written last: its revision is the one that a history which
// departed from ours before it cannot have but by chance, and then the keys
// behind it would have to agree by chance as well. Left is one that departed
// after it: a backup that is newer than the last change here, restored, overtaken
// in revisions, and with as many keys, of which others changed than are compared.
func (f *follower) resumable(ctx context.Context, k keeper, s Session) (bool, error) {
	if f.pos.Revision == 0 {
		return false, nil
	}
	proof, ok := k.proof()
	if !ok {
		return false, nil
	}
	past, err := s.Client.Recall(ctx, proof.prefix, proof.from, f.pos, proofKeys)
	switch {
	case errors.Is(err, kvstore.ErrCompacted):
		return false, nil
	case errors.Is(err, kvstore.ErrServerChanged):
		_, err := s.Client.Head(ctx) // if that is the end of the session, the position may serve the next one
		return false, err
	case err != nil:
		return false, err
	case proof.from == "" && int64(len(past.Items)) < past.Count:
		return false, nil // all were to be compared, and they do not fit into one answer
	}
	if !k.agrees(proof, past) {
		f.log.Warn("The server's history is not the one that was followed: it was emptied or restored; listing again",
			"prefix", s.Prefix, "revision", f.pos.Revision)
		return false, nil
	}
	return true, nil
}

// list reads the whole prefix at one revision, and sweeps what it did not have
// when it was complete.
func (f *follower) list(ctx context.Context, k keeper, s Session) error {
	turn, err := takeTurn(ctx, s.Lists, s.Expect.Cluster)
	if err != nil {
		return err
	}
	defer turn.end()
	start := time.Now()
	// From the first page until the list is complete the keeper has a mixture, of
	// two servers perhaps: no position describes it, and nothing may be resumed.
	f.pos = kvstore.Position{}
	f.state.listing(true)
	defer f.state.listing(false)
	k.begin()
	spent := stopwatch{since: start}
	turn.wait()
	at, err := s.Client.List(ctx, s.Prefix, func(p kvstore.Page) error {
		spent.stop()
		if err := s.waitRoom(ctx); err != nil {
			return err
		}
		if err := turn.resume(ctx); err != nil {
			return err
		}
		spent.start()
		k.page(p)
		f.state.read(len(p.Items), p.Left)
		spent.stop()
		if err := s.timely(spent.total, f.state.readSoFar(), p.Left); err != nil {
			return err
		}
		if err := turn.yield(ctx); err != nil {
			return err
		}
		spent.start()
		turn.wait()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	k.done(at)
	f.pos = at
	f.state.listed(start, at)
	k.listed()
	f.log.Debug("Listed", "prefix", s.Prefix, "revision", at.Revision, "took", time.Since(start))
	return nil
}

// stopwatch adds up times.
type stopwatch struct {
	since time.Time
	total time.Duration
}

func (w *stopwatch) start() { w.since = time.Now() }
func (w *stopwatch) stop()  { w.total += time.Since(w.since) }

// nameOf is the key without its prefix; for a watch of one whole key it is the
// last element of that key.
func nameOf(key []byte, prefix string) []byte {
	if len(key) == len(prefix) {
		return key[strings.LastIndexByte(prefix, '/')+1:]
	}
	return key[len(prefix):]
}

// sessions runs in one session of a client after another, until ctx ends or the client
// is closed.
func (f *follower) sessions(ctx context.Context, k keeper, s Session) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, retryMax
	for {
		started := time.Now()
		err := f.run(ctx, k, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kvstore.ErrClosed):
			return err
		}
		f.log.Debug("The session is over", "prefix", s.Prefix, "error", err)
		f.state.broken(err)
		if time.Since(started) > retryMax {
			pause.Reset()
		}
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}
