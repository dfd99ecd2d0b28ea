package kvstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPathLocksServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPathLocks()
		if err := p.acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []int
		for i := range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				if err := p.acquire(ctx, "a"); err != nil {
					return
				}
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				<-time.After(time.Second)
				p.release("a")
			}()
			synctest.Wait() // it is in the queue
			if i%3 == 0 {
				cancel(ErrClosed)
			} else {
				defer cancel(nil)
			}
		}
		synctest.Wait()
		if err := p.acquire(t.Context(), "b"); err != nil {
			t.Error("another path waits")
		}
		p.release("a")
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i, who := range served {
			if want := 3*(i/2) + 1 + i%2; who != want {
				t.Fatalf("served in the order %v", served)
			}
		}
		if len(served) != 13 || !p.try("a") {
			t.Errorf("%d served, or the path is not free", len(served))
		}
	})
}

func TestPathLockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	p := newPathLocks()
	if err := p.acquire(t.Context(), "a"); err != nil || p.try("a") {
		t.Fatalf("%v, or taken twice", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrClosed)
	if err := p.acquire(ctx, "a"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	p.release("a")
	if len(p.paths) != 0 || !p.try("a") {
		t.Errorf("not free: %v", p.paths)
	}
}
