package syncstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// Run follows the prefix, and has differing keys written, until ctx ends or the writer is closed
// ([kvstore.ErrClosed]). It withdraws nothing when it ends: keys with leases are removed when the leases
// expire. A panic is returned as an error. Run may be called again.
func (s *Sync) Run(ctx context.Context) error {
	if err := s.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.running.Release(1)
	o := s.p.Outbox
	o.add(s)
	// This wait ends: the writes in flight have deadlines.
	defer func() { _ = s.wait(context.Background(), func(l *ledger) bool { return l.inFlight == 0 }) }()
	defer o.remove(s)
	o.writer.OnLeaseExpired(s.p.Prefix, func([]string) { s.refreshLeases() })
	defer o.writer.OnLeaseExpired(s.p.Prefix, nil)
	g, running := errgroup.WithContext(ctx)
	g.Go(guard.Func(func() error {
		return s.follower.Sessions(running, keeper{s}, follow.Session{Client: o.writer, Prefix: s.p.Prefix})
	}))
	if s.p.Shared && s.p.Reassert > 0 {
		g.Go(guard.Func(func() error { return s.reassert(running) }))
	}
	err := g.Wait()
	if ctx.Err() != nil { // a writer that ends with ctx closes its session, perhaps before running has ended
		return ctx.Err()
	}
	return err
}

// reassert reads the own keys of a shared prefix again, at the interval Params.Reassert.
func (s *Sync) reassert(ctx context.Context) error {
	for {
		if err := waiting.Sleep(ctx, s.p.Reassert); err != nil {
			return err
		}
		s.refreshLeases() // they may have changed
		for _, name := range s.names() {
			key := s.p.Prefix + name
			kv, at, err := s.p.Outbox.writer.Get(ctx, key)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.log.Debug("Cannot read a key again", "key", key, "error", err)
				break
			}
			seen := kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{ModRevision: at.Revision}}
			if kv != nil {
				seen = kvstore.Event{Type: kvstore.EventPut, KeyValue: *kv}
			}
			s.update(func(l *ledger) { l.applyEvent([]byte(name), &seen, s.owns) })
		}
	}
}

func (s *Sync) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, s.ledger.records.Len())
	for p := range s.ledger.records.All() {
		names = append(names, s.ledger.records.At(p).Name)
	}
	return names
}

// Drain withdraws all keys of the owner, those of a prefix that is not shared in one transaction,
// and forgets everything. It waits for a Run to end first. After an error it may be called again.
func (s *Sync) Drain(ctx context.Context) error {
	if err := s.running.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.running.Release(1)
	if err := s.withdraw(ctx); err != nil {
		return fmt.Errorf("withdrawing %s: %w", s.p.Prefix, err)
	}
	s.update(func(l *ledger) {
		stopped := l.stopped
		l.invalidateCheckpoints()
		*l = s.p.newLedger()
		l.stopped = stopped
		s.lastErr, s.maxWrites = "", minWrites
	})
	s.follower.Reset()
	return nil
}

func (s *Sync) withdraw(ctx context.Context) error {
	o := s.p.Outbox
	if !s.p.Shared && !s.p.CreateOnly {
		_, err := o.writer.DeletePrefix(ctx, s.p.Prefix, holding(o.holding)...)
		return err
	}
	var writes []kvstore.Write
	for _, name := range s.names() {
		one := kvstore.Write{Key: s.p.Prefix + name, Delete: true}
		if s.p.CreateOnly {
			one.Kept = func(kvstore.KeyValue) {} // a key that is not ours stays
		}
		writes = append(writes, one)
	}
	for some := range slices.Chunk(writes, kvstore.MaxWrites) {
		if _, err := o.writer.Update(ctx, some, holding(o.holding)...); err != nil {
			return err
		}
	}
	return nil
}

// reachWithin bounds the time until a position is applied: the stream may be of a history that never reaches
// it.
const reachWithin = 5 * time.Second

// prove waits until everything that was wanted at the time of the call is written, and proves that the server
// which answers now has it: everything up to the revision that this server reports afterwards has been
// followed, and no wanted key was lost. This may never be the case when another server takes its place: prove
// then returns an error, and the caller tries again.
func (s *Sync) prove(ctx context.Context) error {
	return s.withCheckpoint(ctx, func(c *checkpoint) error {
		for {
			if err := s.reach(ctx, c); err != nil {
				return err
			}
			if err := s.catchUp(ctx); err != nil {
				return err
			}
			if !s.follower.Status().Following {
				return errNotYet
			}
			if s.isReached(c) {
				return nil
			} // else something was lost, and is written again
		}
	})
}

func (s *Sync) catchUp(ctx context.Context) error {
	before := s.follower.Progress()
	at, err := s.p.Outbox.writer.Head(ctx)
	if err != nil {
		return err
	}
	if at.ClusterID != before.Applied.ClusterID || at.Revision < before.Applied.Revision {
		return fmt.Errorf("%w: another server answers", errNotYet)
	}
	within, cancel := context.WithTimeout(ctx, s.reachWithin)
	defer cancel()
	if err := s.follower.Reach(within, at, before.Lists, s.p.Prefix); err != nil {
		return fmt.Errorf("%w: %w", errNotYet, err)
	}
	return nil
}
