package api

import (
	"context"
	"errors"
	"time"
)

// A client that is behind has a moment: what it was sent is exactly what one view shows,
// at one position. While it reads, more changes than the ring keeps. Then another
// view is taken, and the client is sent what differs between the two: the newest of each
// object that changed, once, however often it did. With that it has the later
// moment, and so on until the ring reaches back far enough. So whoever reads at a
// steady speed gets through the state and on from there, and nobody is sent again what
// has not changed.
//
// It is a comparison of views, not a log by object, since a filter needs to know what an
// object was at the position of each client: a view knows that of all objects. What it
// costs is bounded by the number of objects, as that of the state itself, and by the
// turns of those who may have one; a client that keeps up has none.

// turn lets a watch keep a view. The zero value has none.
type turn struct {
	ofPeer func()    // ends the peer's part; nil: it is not taken yet, or end ends it
	end    func()    // nil: it has none
	until  time.Time // then it gives way to those who wait
}

// whyGiveWay is what a client is told whose turn goes to another.
const whyGiveWay = endedError("time is up: the state took more than 10 minutes, and others wait for their turn")

// begin sends the whole state, after a reset when there is a reason for one. The client
// has the moment of the state then.
func (c *watching) begin(ctx context.Context, reason string) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	v := c.view(ctx)
	if err := ctx.Err(); err != nil {
		return err // the view need not be of its position then
	}
	if reason != "" {
		if err := c.out.send(c.s.feed.partial(), WatchReset, map[string]string{"reason": reason}); err != nil {
			return err
		}
	}
	for i, sub := range c.subs {
		if sub.leans() != "" {
			sub.sent = make(map[string]struct{})
		}
		err := sub.res.state(c.s, v, &sub.query, func(object any) error {
			return c.put(ctx, v, sub, c.s.feed.partial(), WatchUpsert, object, v.position)
		})
		if err != nil {
			return err
		}
		id := c.s.feed.partial()
		if i == len(c.subs)-1 {
			id = c.s.feed.token(v.position)
		}
		if err := c.out.send(id, WatchSynced, WatchEvent{sub.res.title(), nil, v.position}); err != nil {
			return err
		}
	}
	c.has, c.position = v, v.position
	return nil
}

// catchUp brings a client that is far behind to the present moment: by the changes, if
// all are there, else by what differs from the moment that it has.
func (c *watching) catchUp(ctx context.Context) error {
	now := c.view(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	size := min(now.position-c.position, c.s.feed.size)
	entries, reached, _, held := c.s.feed.after(c.position, c.resources(), make([]feedEntry, 0, size))
	var err error
	switch {
	case held:
		err = c.deliver(ctx, now, entries)
	case c.has == nil:
		return nil // the next step begins again
	default:
		reached, err = now.position, c.deliverDifferences(ctx, now)
	}
	if err != nil {
		return err
	}
	c.limbo, c.has, c.position = 0, now, reached
	return c.out.beat(c.s.feed.token(reached))
}

// deliverDifferences sends what makes the moment that the client has a later one. Who is cut
// off meanwhile has neither, and begins again.
func (c *watching) deliverDifferences(ctx context.Context, now *view) error {
	for _, sub := range c.subs {
		if err := c.deliverNew(ctx, sub, now); err != nil {
			return err
		}
		if err := c.deliverGone(ctx, sub, now); err != nil {
			return err
		}
	}
	return nil
}

// deliverNew sends the objects that the client does not have, or has as they were.
func (c *watching) deliverNew(ctx context.Context, sub *subscription, now *view) error {
	follower := c.s.feed.followers[sub.index]
	return sub.res.state(c.s, now, &sub.query, func(object any) error {
		old, same := follower.match(sub.index, object, now, c.has)
		if same && c.had(c.has, sub, old, sub.res.keyOf(object)) {
			return ctx.Err()
		}
		return c.put(ctx, now, sub, c.s.feed.partial(), WatchUpsert, object, now.position)
	})
}

// deliverGone sends the end of the objects that the client has, and would not be shown
// any more.
func (c *watching) deliverGone(ctx context.Context, sub *subscription, now *view) error {
	follower := c.s.feed.followers[sub.index]
	return sub.res.state(c.s, c.has, &sub.query, func(object any) error {
		is, _ := follower.match(sub.index, object, c.has, now)
		if is != nil && sub.res.does(c.s, now, &sub.query, is) {
			return ctx.Err()
		}
		if is != nil {
			object = is
		}
		return c.put(ctx, now, sub, c.s.feed.partial(), WatchDelete, object, now.position)
	})
}

// put sends one event about an object, unless others have waited long enough.
func (c *watching) put(ctx context.Context, v *view, sub *subscription, id, kind string, object any, position uint64) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.turn.end != nil && time.Now().After(c.turn.until) && c.s.states.wanted(c.from.peer) {
		return whyGiveWay
	}
	if sub.sent != nil {
		if key := sub.res.keyOf(object); kind == WatchUpsert {
			sub.sent[key] = struct{}{}
		} else {
			delete(sub.sent, key)
		}
	}
	return c.out.put(id, kind, WatchEvent{sub.res.title(), sub.res.show(c.s, v, object), position})
}

// keepUp ends what a client needs that is behind.
func (c *watching) keepUp() {
	if c.has = nil; c.turn.end != nil {
		c.turn.end()
		c.turn = turn{}
	}
}

// takeTurn waits for the turn of this watch, of its peer's and of all; over the unix socket
// none is needed. The first state has its peer's already.
func (c *watching) takeTurn(ctx context.Context) error {
	if c.from.local || c.turn.end != nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	const why = endedError("too many states are being sent to others: come again")
	ofPeer := c.turn.ofPeer
	if ofPeer == nil {
		var err error
		if ofPeer, err = c.s.states.ofPeer(wait, c.from.peer); err != nil {
			return errors.Join(err, why)
		}
	}
	ofAll, err := c.s.states.ofAll(wait)
	if err != nil {
		ofPeer()
		return errors.Join(err, why)
	}
	c.haveTurn(func() { ofAll(); ofPeer() })
	return nil
}

// tryTurn is takeTurn that does not wait; false when none is free.
func (c *watching) tryTurn() bool {
	if c.from.local || c.turn.end != nil {
		return true
	}
	end, ok := c.s.states.try(c.from.peer)
	if ok {
		c.haveTurn(end)
	}
	return ok
}

func (c *watching) haveTurn(end func()) {
	c.turn = turn{end: end, until: time.Now().Add(stateTime)}
}
