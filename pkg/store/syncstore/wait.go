package syncstore

import (
	"context"
	"fmt"
)

// This file is what owners wait for.

// WaitClean waits until everything was given (Complete), and everything that is
// wanted then is there and acknowledged, and nothing unwanted. Each name counts once:
// what the owner changes after that is not waited for, so that changes without end
// do not keep it from ending. The error is the context's, with what is missing.
func (s *Sync) WaitClean(ctx context.Context) error {
	for {
		written, err := s.written(ctx)
		if err != nil {
			st := s.Status()
			return fmt.Errorf("waiting until %s is as wanted: %w (pending %d, failed %d) %s", s.p.Prefix, err, st.Pending, st.Failed, st.Err)
		}
		if written {
			return nil
		}
	}
}

// written waits for one checkpoint, and tells whether it was reached.
func (s *Sync) written(ctx context.Context) (bool, error) {
	c, err := s.checkpoint(ctx)
	if err != nil {
		return false, err
	}
	defer s.leave(c)
	return s.reach(ctx, c)
}

// checkpoint waits until everything was given, and makes a checkpoint then. It is to
// be left.
func (s *Sync) checkpoint(ctx context.Context) (c *checkpoint, err error) {
	for {
		given := s.wait(&s.given, func(l *ledger) bool {
			c = l.checkpoint()
			return c != nil
		})
		if c != nil {
			return c, nil
		}
		select {
		case <-given:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Sync) leave(c *checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.leave(c)
}

func (s *Sync) isReached(c *checkpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.reached()
}

// reach waits until a checkpoint is reached; false: it is void.
func (s *Sync) reach(ctx context.Context, c *checkpoint) (bool, error) {
	for {
		news := s.wait(&s.changed, func(*ledger) bool { return c.void || c.reached() })
		if news == nil {
			return s.isReached(c), nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// roomFor is how many bytes of values may wait to be written before an owner who
// asks should wait.
const roomFor = 8 << 20

// WaitRoom waits while many values, 8 MiB, are held that are to be written. A
// Sync with Again bounds its memory that way, if its owner calls this before a
// page or a batch: Put itself never blocks. Without Again there is always room.
func (s *Sync) WaitRoom(ctx context.Context) error {
	if s.p.Again == nil {
		return nil
	}
	roomy := s.wait(&s.roomy, func(l *ledger) bool { return l.bytes < roomFor })
	if roomy == nil {
		return nil
	}
	select {
	case <-roomy:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for values of %s to be written: %w", s.p.Prefix, ctx.Err())
	}
}

// WaitName waits until one name is as it is wanted, whatever others are and whether
// everything was given or not: there with the wanted value, acknowledged and tied
// to a lease of the writer; or gone, if it is not wanted; or another's
// ([Params.CreateOnly]). The error is the
// context's, with why the kvstore refused the key the last time, if it did.
func (s *Sync) WaitName(ctx context.Context, name string) error {
	for {
		moved := s.wait(&s.moved, func(l *ledger) bool { return l.settled(name) })
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			err := fmt.Errorf("waiting until %s%s is as wanted: %w", s.p.Prefix, name, ctx.Err())
			if why := s.refusal(name); why != nil {
				err = fmt.Errorf("%w; the latest try: %w", err, why)
			}
			return err
		}
	}
}

// refusal is why the write of a name was refused the last time; nil when it was not.
func (s *Sync) refusal(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.refusal(name)
}

// tell wakes up who waits for something, if it has come.
func tell(waiting *chan struct{}, come bool) {
	if come && *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

// wait returns what is to be closed when something has come; nil when it has.
func (s *Sync) wait(on *chan struct{}, come func(*ledger) bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if come(&s.ledger) {
		return nil
	}
	if *on == nil {
		*on = make(chan struct{})
	}
	return *on
}
