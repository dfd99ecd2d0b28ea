package store

import (
	"context"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Session is what a Watch needs of one connection to one cluster.
type Session struct {
	Client kvstore.Client
	// Prefix is where the keys are; it ends in "/", or is one whole key.
	Prefix string
	// Expect is what the entries must agree with.
	Expect wire.Expect
	// Limits is what the keys may cost.
	Limits Limits
	// Lists bounds how many lists run at once in this process, Batches how many
	// batches of events are applied at once; each cluster, by Expect.Cluster, has its
	// turn. nil is no bound.
	Lists, Batches *Turns
	// Room is called before a page or a batch is taken, and waits until there is room
	// for what it brings; nil waits for nothing. While it waits no turn is held that
	// others wait for, and no time of a list goes by.
	Room func(context.Context) error
}

// List hands over the pages of all keys, outside of a Watch, within Limits.List.
func (s Session) List(ctx context.Context, page func(kvstore.Page) error) error {
	spent, n := stopwatch{since: time.Now()}, 0
	_, err := s.Client.List(ctx, s.Prefix, func(p kvstore.Page) error {
		spent.stop()
		if err := s.waitRoom(ctx); err != nil {
			return err
		}
		spent.start()
		if err := page(p); err != nil {
			return err
		}
		n += len(p.Items)
		spent.stop()
		if err := s.timely(spent.total, n, p.Left); err != nil {
			return err
		}
		spent.start()
		return ctx.Err()
	})
	return err
}

// timely ends a list that has taken too long and is not complete.
func (s Session) timely(spent time.Duration, read int, left int64) error {
	if limit := s.Limits.List; limit > 0 && spent > limit && left > 0 {
		return fmt.Errorf("%w: %d keys in %s, and %d are left", ErrListTooLong, read, limit, left)
	}
	return nil
}

func (s Session) waitRoom(ctx context.Context) error {
	if s.Room == nil {
		return nil
	}
	return s.Room(ctx)
}

// recv returns the next batch of a stream.
func (s Session) recv(ctx context.Context, of kvstore.Stream) (kvstore.Batch, error) {
	if err := s.waitRoom(ctx); err != nil {
		return kvstore.Batch{}, err
	}
	return of.Recv()
}
