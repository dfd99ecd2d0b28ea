package waiting

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errGone = errors.New("gone")

func TestNamedLocksServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewNamedLocks()
		if err := p.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []int
		for i := range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				if err := p.Acquire(ctx, "a"); err != nil {
					return
				}
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				<-time.After(time.Second)
				p.Release("a")
			}()
			synctest.Wait() // it is in the queue
			if i%3 == 0 {
				cancel(errGone)
			} else {
				defer cancel(nil)
			}
		}
		synctest.Wait()
		if err := p.Acquire(t.Context(), "b"); err != nil {
			t.Error("another name waits")
		}
		p.Release("a")
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i, who := range served {
			if want := 3*(i/2) + 1 + i%2; who != want {
				t.Fatalf("served in the order %v", served)
			}
		}
		if len(served) != 13 || !p.Try("a") {
			t.Errorf("%d served, or the lock is not free", len(served))
		}
	})
}

func TestNamedLockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	p := NewNamedLocks()
	if err := p.Acquire(t.Context(), "a"); err != nil || p.Try("a") {
		t.Fatalf("%v, or taken twice", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGone)
	if err := p.Acquire(ctx, "a"); !errors.Is(err, errGone) {
		t.Error(err)
	}
	p.Release("a")
	if len(p.named) != 0 || !p.Try("a") {
		t.Errorf("not free: %v", p.named)
	}
}
