package store

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Kind describes one key family: how its values are decoded, and which functions are called.
type Kind[T any] struct {
	// Resource names the family in logs and status.
	Resource wire.Resource
	// Decode returns the function that decodes a value and checks that it is from the expected cluster.
	Decode func(e wire.Expect) Decode[T]
	// Apply makes a batch of changes visible. It returns when they are.
	Apply func([]Change[T])
	// Listed is called whenever a list is complete and applied; it may be nil.
	Listed func()
	// Refused is called whenever the number of keys whose value is refused has changed, after Apply; it may be
	// nil. It must not block.
	Refused func()
	// Metrics are the metrics of all watches together; nil for none.
	Metrics *Metrics
}

// Watch feeds a Set from a kvstore, session after session.
type Watch[T any] struct {
	kind Kind[T]
	log  *slog.Logger

	run       sync.Mutex // held by Run, Follow and Drain, which own decode, unapplied and the follower
	follower  *follow.Follower
	decode    Decode[T]   // of the present Run or Follow
	unapplied []Change[T] // deletions whose Apply has panicked

	mu     sync.RWMutex // locked by the holder of run to change set and prefix, and by others to read them
	set    *Set[T]
	prefix string // of the last Run or Follow

	counts   counts
	warnings *rate.Limiter // of refused entries
}

// NewWatch returns a watch without keys.
func NewWatch[T any](kind Kind[T], log *slog.Logger) *Watch[T] {
	log = cmp.Or(log, slog.New(slog.DiscardHandler)).With("resource", string(kind.Resource))
	w := &Watch[T]{kind: kind, log: log, set: NewSet[T](), warnings: rate.NewLimiter(rate.Every(time.Second), 10)}
	w.follower = &follow.Follower{Log: log, Listed: w.listed, Incomplete: w.set.Lacks}
	return w
}

// Resource names the key family.
func (w *Watch[T]) Resource() wire.Resource { return w.kind.Resource }

// Run follows the prefix until ctx ends or the session can no longer serve, and returns the reason. The known
// keys are kept: the next Run resumes where it can.
func (w *Watch[T]) Run(ctx context.Context, s Session) error {
	return w.with(s, func() error { return w.follower.Run(ctx, keeper[T]{w}, s.bounded()) })
}

// Follow follows the prefix session after session of a client that connects again by
// itself, such as [kvstore.Durable], until ctx ends or the client is closed
// ([kvstore.ErrClosed]). Where the same etcd answers with the same history it resumes
// at its position; otherwise, also after a compaction, it lists again and applies the
// differences. So nothing is missed between two sessions, and nothing is applied twice.
func (w *Watch[T]) Follow(ctx context.Context, s Session) error {
	return w.with(s, func() error { return w.follower.Sessions(ctx, keeper[T]{w}, s.bounded()) })
}

func (w *Watch[T]) with(s Session, follow func() error) error {
	w.run.Lock()
	defer w.run.Unlock()
	if err := kvstore.CheckSelection("watch", s.Prefix, s.bounded().Selects()); err != nil {
		return err
	}
	w.decode = w.kind.Decode(s.Expect)
	w.locked(func() {
		w.prefix = s.Prefix
		w.set.Limit(s.Limits)
	})
	certain := false
	defer func() {
		if !certain { // a panic: the set and the applied changes may differ
			w.decodeAgain()
		}
	}()
	w.applyAgain()
	err := follow()
	certain = true
	return err
}

// Recheck makes the next Run list everything and decode each value again, including the known ones. It is for a
// change in what a decoder refuses. It waits for a running Run.
func (w *Watch[T]) Recheck() {
	w.run.Lock()
	defer w.run.Unlock()
	w.decodeAgain()
}

func (w *Watch[T]) decodeAgain() {
	w.locked(w.set.Recheck)
	w.follower.ListAgain()
}

func (w *Watch[T]) locked(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

type keeper[T any] struct{ *Watch[T] }

func (w keeper[T]) Begin() { w.locked(w.set.Begin) }

func (w keeper[T]) Page(p kvstore.Page) {
	changes := make([]Change[T], 0, len(p.Items))
	w.locked(func() {
		for i := range p.Items {
			changes = w.upsert(changes, &p.Items[i])
		}
	})
	w.commit(changes)
}

func (w keeper[T]) Done(kvstore.Position) { w.sweep(w.set.Done()) }

// Proofs are about all keys of the set, or about the one written last and the number of all. A set that has left out
// keys has none: it could not agree with the server. A set without keys has none, either: any history agrees with that,
// and a list of none costs nothing.
func (w keeper[T]) Proofs() []follow.Proof {
	switch known := w.set.Known(); {
	case w.set.Lacks() || known == 0:
		return nil
	case known <= follow.ProofKeys:
		return []follow.Proof{{Prefix: w.prefix}}
	}
	newest := w.set.Newest()
	return []follow.Proof{{Prefix: w.prefix + newest, OneKey: true, Name: newest}, {Prefix: w.prefix, Part: true}}
}

func (w keeper[T]) Agrees(p follow.Proof, past kvstore.Past) bool { return w.set.Agrees(p.Name, past) }

func (w *Watch[T]) listed() {
	if w.kind.Listed != nil {
		w.kind.Listed()
	}
	w.log.Debug("Applied a list", "prefix", w.prefix, "entries", w.set.Len(), "rejected", w.set.Rejected())
}

// sweepBatch bounds how many deletions are applied at once.
const sweepBatch = 5000

func (w *Watch[T]) sweep(deletions iter.Seq[Change[T]]) {
	next, stop := iter.Pull(deletions)
	defer stop()
	for {
		var batch []Change[T]
		w.locked(func() {
			for len(batch) < sweepBatch {
				ch, more := next()
				if !more {
					break
				}
				batch = append(batch, ch)
			}
		})
		w.commit(batch) // without the lock: Apply may take long
		if len(batch) < sweepBatch {
			return
		}
	}
}

func (w keeper[T]) Apply(b kvstore.Batch) {
	received := time.Now()
	defer w.kind.Metrics.received(w.kind.Resource, len(b.Events))()
	var changes []Change[T]
	w.locked(func() {
		for i := range b.Events {
			e := &b.Events[i]
			if e.Type != kvstore.EventDelete {
				changes = w.upsert(changes, &e.KeyValue)
			} else if ch, ok := w.set.Delete(follow.NameOf(e.Key, w.prefix), e.ModRevision); ok {
				changes = append(changes, ch)
			}
		}
	})
	w.commit(changes)
	if len(b.Events) > 0 {
		w.counts.noteLag(time.Since(received), len(b.Events))
	}
}

func (w *Watch[T]) upsert(to []Change[T], kv *kvstore.KeyValue) []Change[T] {
	ch, ok, err := w.set.Upsert(follow.NameOf(kv.Key, w.prefix), kv.Value, kv.ModRevision, w.decode)
	if err != nil {
		level := slog.LevelDebug
		// A value over the budget is reported for the cluster, not for each key.
		if reasonOf(err) != wire.ReasonBudget && w.warnings.Allow() {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, "Refused an entry; a previous value, if any, stays in use",
			"key", string(kv.Key), "error", err)
	}
	if ok {
		to = append(to, ch)
	}
	return to
}

func (w *Watch[T]) commit(changes []Change[T]) {
	if len(changes) > 0 {
		w.apply(changes)
	}
	if w.counts.update(w.set.Len(), w.set.Rejected(), w.set.Over(), w.refused) && w.kind.Refused != nil {
		w.kind.Refused()
	}
}

// apply applies changes. Deletions whose Apply panics are kept for the next run: a list reports present keys
// again, but not deletions.
func (w *Watch[T]) apply(changes []Change[T]) {
	applied := false
	defer func() {
		if !applied {
			w.unapplied = append(w.unapplied, slices.DeleteFunc(slices.Clone(changes), func(ch Change[T]) bool { return ch.New != nil })...)
		}
	}()
	w.kind.Apply(changes)
	applied = true
}

// applyAgain applies the deletions whose Apply has panicked.
func (w *Watch[T]) applyAgain() {
	if deletions := w.unapplied; len(deletions) > 0 {
		w.unapplied = nil
		w.apply(deletions)
	}
}

func (w *Watch[T]) refused() (map[wire.Reason]int, Refusal) {
	name, why := w.set.Example()
	if why == "" {
		return w.set.Rejections(), Refusal{}
	}
	return w.set.Rejections(), Refusal{Key: w.key(name), Why: why}
}

func (w *Watch[T]) key(name string) string {
	if !strings.HasSuffix(w.prefix, "/") { // it is one whole key
		return w.prefix
	}
	return w.prefix + name
}

// Drain withdraws everything. It waits for a Run to end first.
func (w *Watch[T]) Drain() {
	w.run.Lock()
	defer w.run.Unlock()
	w.applyAgain()
	w.sweep(w.set.Drain())
	w.follower.Reset()
	w.counts.reset()
}
