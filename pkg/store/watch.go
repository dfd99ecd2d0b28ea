package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Kind describes one key family: how its values are read, and who is told.
type Kind[T any] struct {
	// Resource names the family in logs and status.
	Resource wire.Resource
	// Decode reads one value and checks it against the cluster it came from.
	Decode func(e wire.Expect) Decode[T]
	// Apply makes a batch of changes visible. It returns when they are.
	Apply func([]Change[T])
	// Listed is told whenever a list is complete and applied; nil is nobody.
	Listed func()
	// Metrics are those of all watches together; nil is none.
	Metrics *Metrics
}

// Session is what a Watch needs of one connection to one cluster.
type Session struct {
	Client kvstore.Client
	// Prefix is where the keys are; it ends in "/", or is one whole key.
	Prefix string
	// Expect is what the entries must agree with.
	Expect wire.Expect
	// Lists bounds how many lists run at once in this process; nil is no bound.
	Lists *semaphore.Weighted
}

// Watch feeds a Set from a kvstore, session after session.
type Watch[T any] struct {
	kind Kind[T]
	log  *slog.Logger

	run sync.Mutex // held by Run and Drain, which own set and pos
	set *Set[T]
	// pos: everything below prefix up to here is in set; zero before the first
	// list is complete, and when it has to be repeated.
	pos    kvstore.Position
	prefix string

	warnings *rate.Limiter // of refused entries

	state watchState
}

// NewWatch returns a watch that knows nothing yet.
func NewWatch[T any](kind Kind[T], log *slog.Logger) *Watch[T] {
	return &Watch[T]{
		kind: kind,
		log:  log.With("resource", string(kind.Resource)),
		set:  NewSet[T](),

		warnings: rate.NewLimiter(rate.Every(time.Second), 10),
	}
}

// Resource names the key family.
func (w *Watch[T]) Resource() wire.Resource { return w.kind.Resource }

// retryMax bounds the pause between two tries to resume a broken stream within
// one session. The session's own watchdog gives up long before it matters.
const retryMax = 5 * time.Second

// Run follows the prefix until ctx ends or the session cannot serve any more,
// and says why. What is known is kept: the next Run resumes where it can.
func (w *Watch[T]) Run(ctx context.Context, s Session) error {
	w.run.Lock()
	defer w.run.Unlock()
	if s.Prefix != w.prefix {
		w.prefix, w.pos = s.Prefix, kvstore.Position{}
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, retryMax
	for {
		err := w.follow(ctx, s, pause)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kvstore.ErrServerChanged), errors.Is(err, kvstore.ErrClosed):
			return fmt.Errorf("following %s: %w", s.Prefix, err)
		case errors.Is(err, kvstore.ErrCompacted):
			w.log.Debug("Compacted beyond what is known, listing again", "prefix", s.Prefix)
			w.pos = kvstore.Position{}
			w.state.broken(err)
		default:
			w.log.Debug("Stream ended", "prefix", s.Prefix, "error", err)
			w.state.broken(err)
		}
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// follow resumes or lists, then watches until the stream ends.
func (w *Watch[T]) follow(ctx context.Context, s Session, pause backoff.BackOff) error {
	resumable, err := w.resumable(ctx, s)
	if err != nil {
		return err
	}
	if !resumable {
		if err := w.list(ctx, s); err != nil {
			return err
		}
	}
	stream, err := s.Client.Watch(ctx, s.Prefix, w.pos)
	if err != nil {
		return err
	}
	defer stream.Close()
	w.state.following(stream)
	defer w.state.following(nil)
	if resumable {
		w.log.Debug("Resumed", "prefix", s.Prefix, "revision", w.pos.Revision)
	}
	decode := w.kind.Decode(s.Expect)
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		pause.Reset()
		done := w.kind.Metrics.received(w.kind.Resource, len(batch.Events))
		w.apply(s.Prefix, batch, decode)
		done()
	}
}

// proofKeys is how many keys must agree before a stream is resumed.
const proofKeys = 64

// resumable tells whether the position belongs to the history of the etcd that
// answers. Its cluster ID and a revision that was reached do not prove that: a
// server that was wiped, or restored from a backup, under its old token has the
// same cluster ID, and in time it overtakes every position (kvstore.md,
// ListAndWatch). What must hold for a stream to bring everything is that at the
// position the server had what the set has. So it is asked, in one request, what
// it had then: up to proofKeys keys with their revisions and values, and how
// many there were.
//
// For a set of no more keys than that this compares everything, so it is proof
// whatever happened to the server. For a larger one the comparison begins at the
// key that was written last: its revision is the one that a history which
// departed from ours before it cannot have but by chance, and then the keys
// behind it would have to agree by chance as well. Left is one that departed
// after it: a backup that is newer than the last change here, restored, overtaken
// in revisions, and with as many keys, of which others changed than are compared.
func (w *Watch[T]) resumable(ctx context.Context, s Session) (bool, error) {
	if w.pos.Revision == 0 {
		return false, nil
	}
	name, from := "", ""
	if w.set.Known() > proofKeys {
		name = w.set.Newest()
		from = s.Prefix + name
	}
	past, err := s.Client.Recall(ctx, s.Prefix, from, w.pos, proofKeys)
	switch {
	case errors.Is(err, kvstore.ErrCompacted):
		return false, nil
	case errors.Is(err, kvstore.ErrServerChanged):
		_, err := s.Client.Head(ctx) // if that is the end of the session, the position may serve the next one
		return false, err
	case err != nil:
		return false, err
	}
	for i := range past.Items {
		past.Items[i].Key = nameOf(past.Items[i].Key, s.Prefix)
	}
	if !w.set.Agrees(name, past) {
		w.log.Warn("The server's history is not the one that was followed: it was emptied or restored; listing again",
			"prefix", s.Prefix, "revision", w.pos.Revision)
		return false, nil
	}
	return true, nil
}

// list reads the whole prefix at one revision, and sweeps what it did not have
// when it was complete.
func (w *Watch[T]) list(ctx context.Context, s Session) error {
	turn, err := takeTurn(ctx, s.Lists)
	if err != nil {
		return err
	}
	defer turn.end()
	start := time.Now()
	// From the first page until the list is complete the set is a mixture, of
	// two servers perhaps: no position describes it, and nothing may be resumed.
	w.pos = kvstore.Position{}
	w.state.listing(true)
	defer w.state.listing(false)
	w.set.Begin()
	decode := w.kind.Decode(s.Expect)
	turn.wait()
	at, err := s.Client.List(ctx, s.Prefix, func(p kvstore.Page) error {
		if err := turn.resume(ctx); err != nil {
			return err
		}
		defer turn.wait()
		changes := make([]Change[T], 0, len(p.Items))
		for i := range p.Items {
			changes = w.upsert(changes, s.Prefix, &p.Items[i], decode)
		}
		w.commit(changes)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	w.sweep(w.set.Done())
	w.pos = at
	w.state.listed(start, at)
	if w.kind.Listed != nil {
		w.kind.Listed()
	}
	w.log.Debug("Listed", "prefix", s.Prefix, "entries", w.set.Len(), "rejected", w.set.Rejected(),
		"revision", at.Revision, "took", time.Since(start))
	return nil
}

// sweepBatch bounds how many deletions are applied at once.
const sweepBatch = 5000

func (w *Watch[T]) sweep(deletions func(func(Change[T]) bool)) {
	batch := make([]Change[T], 0, 64)
	for ch := range deletions {
		if batch = append(batch, ch); len(batch) == sweepBatch {
			w.commit(batch)
			batch = batch[:0]
		}
	}
	w.commit(batch)
}

func (w *Watch[T]) apply(prefix string, b kvstore.Batch, decode Decode[T]) {
	var changes []Change[T]
	for i := range b.Events {
		e := &b.Events[i]
		if e.Type != kvstore.EventDelete {
			changes = w.upsert(changes, prefix, &e.KeyValue, decode)
		} else if ch, ok := w.set.Delete(nameOf(e.Key, prefix), e.ModRevision); ok {
			changes = append(changes, ch)
		}
	}
	w.commit(changes)
	if !b.Partial {
		w.pos = b.At
	}
	w.state.advance(w.pos, len(b.Events) > 0)
}

func (w *Watch[T]) upsert(to []Change[T], prefix string, kv *kvstore.KeyValue, decode Decode[T]) []Change[T] {
	ch, ok, err := w.set.Upsert(nameOf(kv.Key, prefix), kv.Value, kv.ModRevision, decode)
	if err != nil {
		level := slog.LevelDebug
		if w.warnings.Allow() {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, "Refused an entry; a value before it stays in force",
			"key", string(kv.Key), "error", err)
	}
	if ok {
		to = append(to, ch)
	}
	return to
}

// nameOf is the key without its prefix; for a watch of one whole key it is the
// last element of that key.
func nameOf(key []byte, prefix string) []byte {
	if len(key) == len(prefix) {
		return key[strings.LastIndexByte(prefix, '/')+1:]
	}
	return key[len(prefix):]
}

func (w *Watch[T]) commit(changes []Change[T]) {
	if len(changes) > 0 {
		w.kind.Apply(changes)
	}
	w.state.counts(w.set.Len(), w.set.Rejected(), w.refused)
}

// refused describes what is refused at present.
func (w *Watch[T]) refused() (map[wire.Reason]int, Refusal) {
	name, why := w.set.Example()
	if why == "" {
		return w.set.Rejections(), Refusal{}
	}
	key := w.prefix
	if strings.HasSuffix(key, "/") { // else it is one whole key
		key += name
	}
	return w.set.Rejections(), Refusal{Key: key, Why: why}
}

// Drain withdraws everything. It waits for a Run to end first.
func (w *Watch[T]) Drain() {
	w.run.Lock()
	defer w.run.Unlock()
	w.sweep(w.set.Drain())
	w.pos = kvstore.Position{}
	w.state.reset()
}
