package allocator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// inBubble runs the test in a synctest bubble, with its own clock.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// onStore runs a test with a store and a running allocator of one node.
func onStore(t *testing.T, test func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator), opts ...Option) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		b := s.backend("n")
		test(t, s, b, running(t, b, opts...))
	})
}

// running returns an allocator that runs until the test ends.
func running(t *testing.T, b Backend, opts ...Option) *Allocator {
	t.Helper()
	a, _ := started(t, b, opts...)
	return a
}

// started returns a running allocator, and a function that stops it and waits.
func started(t *testing.T, b Backend, opts ...Option) (*Allocator, func()) {
	t.Helper()
	a, err := NewAllocator(b, opts...)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop := func() {
		cancel()
		<-a.stopped
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
	return a, stop
}

// mustAllocate returns the key's ID.
func mustAllocate(t *testing.T, a *Allocator, text string) uint64 {
	t.Helper()
	id, _, _, err := a.Allocate(t.Context(), textKey(text))
	must(t, err)
	return id
}

func mustRelease(t *testing.T, a *Allocator, text string) (lastUse bool) {
	t.Helper()
	lastUse, err := a.Release(t.Context(), textKey(text))
	must(t, err)
	return lastUse
}

// wantContents compares the contents of the store after all activity has ended.
func wantContents(t *testing.T, s *memoryStore, want string) {
	t.Helper()
	synctest.Wait()
	if got := s.contents(); got != want {
		t.Errorf("the store has %q, want %q", got, want)
	}
	s.rightly(t)
}

// failOn returns a fault that fails one operation, before or after it took effect.
func failOn(op string, after bool, err error) func(context.Context, string, bool) error {
	return func(_ context.Context, o string, a bool) error {
		if o == op && a == after {
			return err
		}
		return nil
	}
}

// blockOn returns a fault that blocks one operation until its context ends.
func blockOn(op string) func(context.Context, string, bool) error { return holdOn(op, nil) }

// holdOn returns a fault that blocks one operation until the channel is closed or its context ends.
func holdOn(op string, until <-chan struct{}) func(context.Context, string, bool) error {
	return func(ctx context.Context, o string, after bool) error {
		if o != op || after {
			return nil
		}
		select {
		case <-until:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var must = waittest.Must
