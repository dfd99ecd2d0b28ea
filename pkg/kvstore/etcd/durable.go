package etcd

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

var (
	_ kvstore.Engine  = (*Session)(nil)
	_ kvstore.Session = (*Session)(nil)
)

// NewDurable returns a [kvstore.Durable] of sessions with an etcd. load is called before each
// attempt, so that a changed client file counts. The pauses between attempts grow with
// the own cluster ([Options.Stretch]).
func NewDurable(load func() (*clientfile.Config, error), o Options) *kvstore.Durable {
	if o.Timings == (Timings{}) {
		o.Timings = DefaultTimings()
	}
	if o.Leases == nil {
		o.Leases = kvstore.NewLeases()
	}
	open := func(ctx context.Context, attempt int) (kvstore.Session, error) {
		cfg, err := load()
		if err != nil {
			return nil, err
		}
		e, err := Connect(ctx, cfg, attempt, o)
		if err != nil {
			return nil, err // and no session that is a nil pointer
		}
		return e, nil
	}
	return kvstore.NewDurable(open, kvstore.DurableOptions{
		Leases: o.Leases, Wait: o.Timings.Connect, PauseMax: o.Timings.BackoffMax, Stretch: o.Stretch, Hint: hint.Text, Log: o.Log,
	})
}
