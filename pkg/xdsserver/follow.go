package xdsserver

import (
	"context"
	"errors"
	"maps"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// retryInterval is how often what is held back is looked at: nothing of the services changes when a
// cluster that has none of them was read.
const retryInterval = time.Second

// follower takes the changes of services into a catalog. It belongs to one goroutine.
type follower struct {
	*catalog
	changed map[serviceName]struct{}
}

// run follows the view until ctx ends, whose error it returns. What is followed by clients before it
// begins is made of a state that is not older than its token.
func (c *catalog) run(ctx context.Context, token string) error {
	f := &follower{catalog: c, changed: make(map[serviceName]struct{})}
	for {
		err := c.view.Stream(token, view.Subscription{Kind: view.Services}).Run(ctx, f, nil)
		if ctx.Err() != nil || !errors.As(err, new(view.Ended)) {
			return err
		}
		token = c.view.Token(c.view.Position()) // it was too slow: everything is looked at again
		if err := c.update(nil); err != nil {
			return err
		}
	}
}

// Event implements [view.Receiver].
func (f *follower) Event(e view.Event) error {
	switch e.Type {
	case view.Reset:
		clear(f.changed)
		return f.update(nil)
	case view.Upsert, view.Delete:
		if g, ok := e.Object.(*services.Global); ok {
			f.changed[serviceName{g.Namespace, g.Name}] = struct{}{}
		}
	case view.Page, view.Reached:
		return f.flush()
	}
	return nil
}

// Idle implements [view.Receiver].
func (f *follower) Idle(ctx context.Context, _ view.Event, more <-chan struct{}) error {
	if err := f.flush(); err != nil {
		return err
	}
	again := time.NewTicker(retryInterval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
			return nil
		case <-again.C:
			if err := f.retry(); err != nil {
				return err
			}
		}
	}
}

// hold tells whether an assignment is held back: nobody learns that a service has no backends while
// a cluster that may have them could not be read since the start. A client that knows some from
// another agent goes on with them; one that knows none waits as long as it does.
func (c *catalog) hold(a *endpointv3.ClusterLoadAssignment) bool {
	return usable(a) == 0 && len(c.view.Unread()) > 0
}

// retry looks at what is held back again: the clusters may have been read.
func (c *catalog) retry() error {
	c.mu.Lock()
	held := maps.Clone(c.held)
	c.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	return c.update(held)
}

func (f *follower) flush() error {
	if len(f.changed) == 0 {
		return nil
	}
	defer clear(f.changed)
	return f.update(f.changed)
}
