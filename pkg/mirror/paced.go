package mirror

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// paced is a session with a remote of which no more is read while much of it is still
// to be written. The wait comes before a page or a batch is handed over: whoever lists
// has no turn then that others wait for.
type paced struct {
	kvstore.Client
	room func(context.Context) error // waits until there is room
}

func (p paced) List(ctx context.Context, prefix string, page func(kvstore.Page) error, holding ...*kvstore.Lock) (kvstore.Position, error) {
	return p.Client.List(ctx, prefix, func(got kvstore.Page) error {
		if err := p.room(ctx); err != nil {
			return err
		}
		return page(got)
	}, holding...)
}

func (p paced) Watch(ctx context.Context, prefix string, after kvstore.Position) (kvstore.Stream, error) {
	s, err := p.Client.Watch(ctx, prefix, after)
	if err != nil {
		return nil, err
	}
	return &pacedStream{s, ctx, p.room}, nil
}

type pacedStream struct {
	kvstore.Stream
	ctx  context.Context //nolint:containedctx // that of the stream
	room func(context.Context) error
}

func (s *pacedStream) Recv() (kvstore.Batch, error) {
	if err := s.room(s.ctx); err != nil {
		return kvstore.Batch{}, err
	}
	return s.Stream.Recv()
}
