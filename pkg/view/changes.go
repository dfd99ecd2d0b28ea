package view

import (
	"context"
	"errors"
	"iter"
)

// Changes is a stream of some kinds, all of them when none is named, without filters:
// first the state, then every change, until ctx ends; the last error is that of ctx. With
// the token of an earlier event it goes on there. Event by event, Before and Object are
// the object before and after; while the body of the loop runs, nothing is buffered.
func (v *View) Changes(ctx context.Context, token string, kinds ...Kind) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		subs := make([]Subscription, len(kinds))
		for i, k := range kinds {
			subs[i].Kind = k
		}
		err := v.Stream(token, subs...).Run(ctx, yielding(yield), nil)
		if !errors.Is(err, errStopped) {
			yield(Event{}, err)
		}
	}
}

// yielding is the receiver of a loop.
type yielding func(Event, error) bool

var errStopped = errors.New("the loop has ended")

func (y yielding) Event(e Event) error {
	if e.Type != Page && !y(e, nil) {
		return errStopped
	}
	return nil
}

func (y yielding) Idle(ctx context.Context, _ Event, more <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
		return nil
	}
}
