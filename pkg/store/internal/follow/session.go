package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// ErrListTooLong ends a list that takes longer than [Session].ListTime.
var ErrListTooLong = errors.New("the list exceeds its time limit")

// Session is one connection to a kvstore, with the bounds of reading from it. The zero value of each bound is
// no bound.
type Session struct {
	Client kvstore.Client
	// Prefix is where the keys are; it ends in "/". With OneKey it is one whole key.
	Prefix string
	OneKey bool
	// ListTime bounds how long a list may take, without the time in which it waits for
	// its turn and for room. Events bounds the rate of events.
	ListTime time.Duration
	Events   *rate.Limiter
	// Room waits until there is room for another page or batch.
	Room func(context.Context) error
	// Lists bounds how many lists run at once, Batches how many batches of events are applied at once; Cluster
	// is the cluster that takes the turns.
	Lists, Batches *Turns
	Cluster        string
}

// List passes the pages of all keys to page, within the bounds of the session. It takes no turn.
func (s Session) List(ctx context.Context, page func(kvstore.Page) error) error {
	_, err := s.list(ctx, new(turn), page)
	return err
}

func (s Session) list(ctx context.Context, turn *turn, page func(kvstore.Page) error) (kvstore.Position, error) {
	spent, read := stopwatch{since: time.Now()}, 0
	turn.Wait()
	var which []kvstore.ReadOption
	for _, o := range s.Selects() {
		which = append(which, o)
	}
	return s.Client.List(ctx, s.Prefix, func(p kvstore.Page) error {
		spent.stop()
		if err := s.waitRoom(ctx); err != nil {
			return err
		}
		if err := turn.Resume(ctx); err != nil {
			return err
		}
		spent.start()
		if err := page(p); err != nil {
			return err
		}
		read += len(p.Items)
		spent.stop()
		if s.ListTime > 0 && spent.total > s.ListTime && p.Left > 0 {
			return fmt.Errorf("%w: %d keys in %s, and %d are left", ErrListTooLong, read, s.ListTime, p.Left)
		}
		if err := turn.Yield(ctx); err != nil {
			return err
		}
		spent.start()
		turn.Wait()
		return ctx.Err()
	}, which...)
}

// Selects returns the options with which the client selects the keys.
func (s Session) Selects() []kvstore.SelectOption {
	if s.OneKey {
		return []kvstore.SelectOption{kvstore.OneKey()}
	}
	return nil
}

func (s Session) waitRoom(ctx context.Context) error {
	if s.Room == nil {
		return nil
	}
	return s.Room(ctx)
}

type stopwatch struct {
	since time.Time
	total time.Duration
}

func (w *stopwatch) start() { w.since = time.Now() }
func (w *stopwatch) stop()  { w.total += time.Since(w.since) }
