package syncstore

import "context"

// exclusive is a lock that can be waited for with a context.
type exclusive chan struct{}

func newExclusive() exclusive { return make(exclusive, 1) }

func (e exclusive) lock(ctx context.Context) error {
	select {
	case e <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e exclusive) unlock() { <-e }
