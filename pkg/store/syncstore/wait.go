package syncstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// WaitClean waits until everything was given (Complete), and everything that is wanted at that time is present
// and acknowledged, and no unwanted key is present. It does not wait for later changes of the owner, so endless
// changes do not prevent it from ending. The error wraps the context's, and has the numbers of the missing
// keys.
func (s *Sync) WaitClean(ctx context.Context) error {
	for {
		err := s.withCheckpoint(ctx, func(c *checkpoint) error { return s.reach(ctx, c) })
		if ctx.Err() != nil && err != nil {
			st := s.Status()
			return fmt.Errorf("waiting until %s is as wanted: %w (pending %d, failed %d) %s", s.p.Prefix, ctx.Err(), st.Pending, st.Failed, st.Err)
		}
		if err == nil {
			return nil
		}
	}
}

// withCheckpoint waits until everything was given, and calls f with a checkpoint of that time.
func (s *Sync) withCheckpoint(ctx context.Context, f func(*checkpoint) error) error {
	var c *checkpoint
	err := s.wait(ctx, func(l *ledger) bool {
		c = l.newCheckpoint()
		return c != nil
	})
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ledger.dropCheckpoint(c)
	}()
	return f(c)
}

// errNotYet is the error when nothing is proved although everything seemed to be written.
var errNotYet = errors.New("the keys have changed meanwhile")

// reach waits until a checkpoint is reached. The error is that of ctx, or errNotYet when
// it is invalid.
func (s *Sync) reach(ctx context.Context, c *checkpoint) error {
	err := s.wait(ctx, func(*ledger) bool { return c.invalid || c.isReached() })
	if err == nil && !s.isReached(c) {
		return errNotYet
	}
	return err
}

func (s *Sync) isReached(c *checkpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.isReached()
}

// maxHeld is the number of bytes of held values at which WaitRoom waits.
const maxHeld = 8 << 20

// WaitRoom waits while 8 MiB or more of values that have to be written are held. The owner of a Sync with Again
// calls it before a page or a batch, to bound the memory of the Sync. Without Again it does not wait.
func (s *Sync) WaitRoom(ctx context.Context) error {
	if s.p.Again == nil {
		return nil
	}
	if err := s.wait(ctx, func(l *ledger) bool { return l.bytes < maxHeld }); err != nil {
		return fmt.Errorf("waiting for values of %s to be written: %w", s.p.Prefix, err)
	}
	return nil
}

// WaitName waits until one name is as wanted, regardless of other names and of whether everything was given:
// present with the wanted value, acknowledged and tied to a lease of the writer; or absent, if it is not
// wanted; or a key of another writer ([Params.CreateOnly]). The error wraps the context's, with the latest
// reason for which the kvstore refused the key, if it did.
func (s *Sync) WaitName(ctx context.Context, name string) error {
	err := s.wait(ctx, func(l *ledger) bool { return l.isWritten(name) })
	if err == nil {
		return nil
	}
	err = fmt.Errorf("waiting until %s%s is as wanted: %w", s.p.Prefix, name, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.ledger.refusal(name); why != nil {
		err = fmt.Errorf("%w; the latest try: %w", err, why)
	}
	return err
}

type waiter struct {
	met  func(*ledger) bool
	done chan struct{} // closed when met was true
}

// wait waits until a condition is met. The condition is called with the lock held, until it is true, then never
// again. The error is the context's.
func (s *Sync) wait(ctx context.Context, met func(*ledger) bool) error {
	w := s.addWaiter(met)
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiters, w)
	if i < 0 {
		return nil // it was met at the same time
	}
	s.waiters = slices.Delete(s.waiters, i, i+1)
	return ctx.Err()
}

func (s *Sync) addWaiter(met func(*ledger) bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if met(&s.ledger) {
		return nil
	}
	w := &waiter{met, make(chan struct{})}
	s.waiters = append(s.waiters, w)
	return w
}

// wake ends the wait of each waiter whose condition is met. The lock is held.
func (s *Sync) wake() {
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		met := w.met(&s.ledger)
		if met {
			close(w.done)
		}
		return met
	})
}
