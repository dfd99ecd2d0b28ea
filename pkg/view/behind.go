package view

import (
	"context"
	"errors"
	"time"
)

// How a reader that is behind catches up. It has the state of one snapshot, at one position. While it reads that state,
// more changes happen than the ring keeps. Then another snapshot is taken, and the reader is sent the differences
// between the two: the newest version of each object that changed, once, however often it changed. After that it has
// the state of the later snapshot. This repeats until the ring reaches back far enough. So a reader with a steady speed
// gets through the state and the changes after it, and unchanged objects are not sent again.
//
// Snapshots are compared, and no log by object is kept, since a filter needs the version of an object at the position
// of each reader: a snapshot has it for all objects. The cost is bounded by the number of objects, like that of the
// state itself, and by the number of turns. A reader that keeps up has no such cost.

// turn lets a stream keep a snapshot. The zero value is no turn.
type turn struct {
	end   func()    // nil: the stream has no turn
	until time.Time // after that, the turn ends if others wait
}

// whyGiveWay ends the stream of a reader whose turn goes to another.
const whyGiveWay = Ended("time is up: the state took more than 10 minutes, and others wait for their turn")

// begin sends the whole state, after a reset when there is a reason for one. After that the reader has the state of
// this snapshot.
func (s *Stream) begin(ctx context.Context, reason string) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	s.keep()
	now := s.snapshot(ctx)
	if err := ctx.Err(); err != nil {
		return err // the snapshot may not match its position then
	}
	if reason != "" {
		if err := s.to.Event(Event{Type: Reset, Position: now.Position, Reason: reason, feed: s.v.feed, partial: true}); err != nil {
			return err
		}
	}
	for i, sub := range s.subs {
		if sub.Filter.DependsOn() != "" {
			sub.sent = make(map[string]struct{})
		}
		err := sub.each(now, func(object any) error { return s.put(ctx, sub, s.partly(now, Upsert, object, nil)) })
		if err != nil {
			return err
		}
		last := i == len(s.subs)-1
		if err := s.to.Event(Event{Type: Synced, Kind: sub.Kind, Position: now.Position, feed: s.v.feed, partial: !last}); err != nil {
			return err
		}
	}
	s.has, s.position = now, now.Position
	return nil
}

// partly returns an event that is part of sending a snapshot.
func (s *Stream) partly(now *Snapshot, t EventType, object, before any) Event {
	return Event{Type: t, Position: now.Position, Object: object, Before: before, Snapshot: now, feed: s.v.feed, partial: true}
}

// catchUp brings a reader that is far behind to the present state: with the changes, if the ring has all of them, else
// with the differences from the state that it has.
func (s *Stream) catchUp(ctx context.Context) error {
	s.keep()
	now := s.snapshot(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	size := min(now.Position-s.position, s.v.feed.size)
	entries, reached, _, held := s.v.feed.after(s.position, s.kinds(), make([]feedEntry, 0, size))
	var err error
	switch {
	case held:
		err = s.deliver(ctx, now, entries)
	case s.has == nil:
		return nil // the next step begins again
	default:
		reached, err = now.Position, s.deliverDifferences(ctx, now)
	}
	if err != nil {
		return err
	}
	s.restarts, s.has, s.position = 0, now, reached
	return s.to.Event(s.at(Reached))
}

// deliverDifferences sends the differences between the reader's state and a later one. A reader that is cut off
// meanwhile has neither state, and begins again.
func (s *Stream) deliverDifferences(ctx context.Context, now *Snapshot) error {
	for _, sub := range s.subs {
		if err := s.deliverNew(ctx, sub, now); err != nil {
			return err
		}
		if err := s.deliverGone(ctx, sub, now); err != nil {
			return err
		}
	}
	return nil
}

// deliverNew sends the objects that the reader does not have, or has in an older version.
func (s *Stream) deliverNew(ctx context.Context, sub *Subscription, now *Snapshot) error {
	follower := s.v.feed.followers[sub.index]
	return sub.each(now, func(object any) error {
		old, same := follower.match(object, now, s.has)
		switch sentBefore := s.sentBefore(s.has, sub, old, sub.kind.key(object)); {
		case same && sentBefore:
			return ctx.Err()
		case !sentBefore:
			old = nil
		}
		return s.put(ctx, sub, s.partly(now, Upsert, object, old))
	})
}

// deliverGone sends a deletion for the objects that the reader has and that are gone or no longer pass the filter.
func (s *Stream) deliverGone(ctx context.Context, sub *Subscription, now *Snapshot) error {
	follower := s.v.feed.followers[sub.index]
	return sub.each(s.has, func(object any) error {
		is, _ := follower.match(object, s.has, now)
		if is != nil && sub.Filter.Matches(now, is) {
			return ctx.Err()
		}
		e := s.partly(now, Delete, object, object)
		if is != nil {
			e.Object = is
		}
		return s.put(ctx, sub, e)
	})
}

// put sends one event about an object, unless the stream was ended, or its turn is over and others wait.
func (s *Stream) put(ctx context.Context, sub *Subscription, e Event) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.ended.Load() {
		return whyEnded
	}
	if s.turn.end != nil && time.Now().After(s.turn.until) && s.turns.Wanted() {
		return whyGiveWay
	}
	if sub.sent != nil {
		if key := sub.kind.key(e.Object); e.Type == Upsert {
			sub.sent[key] = struct{}{}
		} else {
			delete(sub.sent, key)
		}
	}
	e.Kind = sub.Kind
	return s.to.Event(e)
}

// keepUp releases what only a reader that is behind needs: its snapshot and its turn.
func (s *Stream) keepUp() {
	s.letGo()
	if s.has = nil; s.turn.end != nil {
		s.turn.end()
		s.turn = turn{}
	}
}

// takeTurn waits for the turn of this stream, if it needs one.
func (s *Stream) takeTurn(ctx context.Context) error {
	if s.turns == nil || s.turn.end != nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	end, err := s.turns.Take(wait)
	if err != nil {
		return errors.Join(err, Ended("too many clients are receiving a full state: retry later"))
	}
	s.haveTurn(end)
	return nil
}

// tryTurn is takeTurn without waiting; it returns false when no turn is free.
func (s *Stream) tryTurn() bool {
	if s.turns == nil || s.turn.end != nil {
		return true
	}
	end, ok := s.turns.Try()
	if ok {
		s.haveTurn(end)
	}
	return ok
}

func (s *Stream) haveTurn(end func()) {
	s.turn = turn{end: end, until: time.Now().Add(TurnTime)}
}
