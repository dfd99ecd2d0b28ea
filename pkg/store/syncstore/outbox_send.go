package syncstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// How long the outbox waits after the kvstore could not be reached (longer with each failure).
const (
	unreachableFirst = 5 * time.Millisecond
	unreachableMax   = 5 * time.Second
)

// sender is one Run of an outbox: it sends batches and handles the responses.
type sender struct {
	o         *Outbox
	responses chan response
	inFlight  int  // batches without a response
	retrying  bool // one of them is a retry

	pause       *backoff.ExponentialBackOff
	unreachable bool      // as of the last response
	resume      time.Time // nothing is sent before this
}

type response struct {
	err   error // nil also for writes that were refused
	retry bool  // the batch is a write that was refused before, or is of a Sync with refused writes
}

// Run writes until ctx ends or a lock is lost. The error for a lost lock wraps [kvstore.ErrLockLeaseExpired],
// and nothing more is written. Only one Run is active at a time.
func (o *Outbox) Run(ctx context.Context) error {
	if err := o.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer o.running.Release(1)
	ctx, cancel := context.WithCancel(ctx)
	s := &sender{o: o, responses: make(chan response, maxInFlight), pause: backoff.NewExponentialBackOff()}
	s.pause.InitialInterval, s.pause.MaxInterval = unreachableFirst, unreachableMax
	defer s.drain()
	defer cancel()
	for {
		next := s.sendReady(ctx)
		if err := s.await(ctx, next); err != nil {
			return err
		}
	}
}

// sendReady sends the batches that can be sent now, and returns when to call it again; zero for never.
func (s *sender) sendReady(ctx context.Context) (next time.Time) {
	now := time.Now()
	if now.Before(s.resume) {
		return s.resume
	}
	if s.inFlight < maxInFlight && !s.retrying {
		var b batch
		if b, next = s.o.collectRetry(now); b != nil {
			s.send(ctx, b, true)
		}
	}
	for s.inFlight < maxInFlight && (!s.unreachable || s.inFlight == 0) {
		b, retry, due := s.o.collect(s.inFlight == 0, !s.retrying)
		next = earlier(next, due)
		if b == nil {
			break
		}
		s.send(ctx, b, retry)
	}
	return next
}

func (s *sender) send(ctx context.Context, b batch, retry bool) {
	s.inFlight++
	s.retrying = s.retrying || retry
	go func() { s.responses <- response{s.o.write(ctx, b), retry} }()
}

func (s *sender) await(ctx context.Context, next time.Time) error {
	var due <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.o.wake:
	case <-due:
	case r := <-s.responses:
		return s.handle(ctx, r)
	}
	return nil
}

func (s *sender) handle(ctx context.Context, r response) error {
	s.inFlight--
	if r.retry {
		s.retrying = false
	}
	switch {
	case r.err == nil:
		if s.unreachable {
			s.o.log.Info("Writing to the kvstore again")
		}
		s.unreachable = false
		s.o.setError(nil)
		s.pause.Reset()
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(r.err, kvstore.ErrLockLeaseExpired):
		return fmt.Errorf("writing to the kvstore: %w", r.err)
	default:
		if !s.unreachable {
			s.o.log.Warn("Cannot write to the kvstore, trying again", "error", r.err)
		}
		s.unreachable = true
		s.o.setError(r.err)
		if errors.Is(r.err, kvstore.ErrNoSpace) {
			s.o.handleNoSpace()
		}
		if now := time.Now(); !now.Before(s.resume) { // else another batch in flight at that time has failed already
			s.resume = now.Add(s.pause.NextBackOff())
		}
	}
	return nil
}

func (s *sender) drain() {
	for ; s.inFlight > 0; s.inFlight-- {
		<-s.responses
	}
}

// write makes a transaction of a batch. When it is refused, write makes two of its halves, and so on, until
// each refused write is alone. It reports the outcome of each write to its Sync. The error is that of an
// unreachable kvstore or of a lost lock.
func (o *Outbox) write(ctx context.Context, b batch) error {
	for todo := []batch{b}; len(todo) > 0; todo = todo[1:] {
		b := todo[0]
		writes := b.writes()
		res, err := o.writer.Update(ctx, writes, append(holding(o.holding), kvstore.Leased())...)
		switch {
		case err == nil:
			b.finish(acknowledged, res.At.Revision, nil)
		case !kvstore.IsRefused(err):
			if errors.Is(err, kvstore.ErrNoSpace) {
				b.countRefused()
			}
			for _, b := range todo {
				b.finish(unknown, 0, nil)
			}
			return err
		case len(writes) == 1:
			level := slog.LevelDebug
			if o.warnings.Allow() {
				level = slog.LevelWarn
			}
			o.log.Log(ctx, level, "The kvstore refuses a write, trying again later", "error", err)
			b.finish(refused, 0, err)
		default:
			first, second := b.halves()
			todo = append(todo, first, second) // large ones first: most of them are good
		}
	}
	return nil
}

// batch is the contents of a transaction: writes of one or more Syncs.
type batch []syncWrites

type syncWrites struct {
	of    *Sync
	parts []part
}

func (b batch) count(s *Sync) (n int) {
	for _, w := range b {
		if w.of == s {
			n += len(w.parts)
		}
	}
	return n
}

func (b batch) writes() []kvstore.Write {
	var writes []kvstore.Write
	for _, w := range b {
		for i := range w.parts {
			p := &w.parts[i]
			one := kvstore.Write{Key: w.of.p.Prefix + p.name, Value: p.value, Delete: p.deletes, Unleased: w.of.p.Unleased, Absent: func() { p.absent = true }}
			if w.of.p.CreateOnly {
				one.Kept = func(kv kvstore.KeyValue) { p.kept = &kv }
			}
			writes = append(writes, one)
		}
	}
	return writes
}

func (b batch) finish(o outcome, rev int64, err error) {
	for _, w := range b {
		w.of.finish(w.parts, o, rev, err)
	}
}

// countRefused counts the puts of a transaction that the kvstore has not made because there was no space. Each
// try counts, as for a write that is refused because of its key or value.
func (b batch) countRefused() {
	for _, w := range b {
		for i := range w.parts {
			if !w.parts[i].deletes {
				w.of.errors.Add(1)
			}
		}
	}
}

// halves splits a batch: between Syncs where there are several, so that the refusals of
// one delay the others least.
func (b batch) halves() (first, second batch) {
	if n := len(b); n > 1 {
		return b[:n/2], b[n/2:]
	}
	w := b[0]
	n := len(w.parts) / 2
	return batch{{w.of, w.parts[:n]}}, batch{{w.of, w.parts[n:]}}
}
