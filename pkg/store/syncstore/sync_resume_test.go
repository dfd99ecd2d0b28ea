package syncstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// TestWaitRoom: an owner that gives many values at once waits until some of them are written.
func TestWaitRoom(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	s := New(Params{Prefix: "p/", Outbox: d.outbox, Again: func([]string) {}})
	s.Complete()
	value := make([]byte, maxHeld/4)
	for i := range 4 {
		must(t, s.WaitRoom(d.ctx))
		s.Put(fmt.Sprint(i), value)
	}
	soon, cancel := context.WithTimeout(d.ctx, 10*time.Millisecond)
	defer cancel()
	if err := s.WaitRoom(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("there is room: %v", err)
	}
	d.run(s.Run)
	if err := s.WaitRoom(d.ctx); err != nil {
		t.Error(err)
	}
	d.clean(s)
	s.update(func(l *ledger) {
		if l.bytes != 0 {
			t.Errorf("%d bytes are still held", l.bytes)
		}
	})
}

// TestASyncResumes: after a lost connection nothing is listed again.
func TestASyncResumes(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		for _, n := range []int{3, 3 * follow.ProofKeys} {
			t.Run(fmt.Sprint(name, " with ", n), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, nil)
				s := New(Params{Prefix: "p/", Shared: shared, Outbox: d.outbox})
				want := map[string]string{}
				for i := range n {
					want[fmt.Sprint(i)] = "1"
					s.Put(fmt.Sprint(i), []byte("1"))
				}
				if shared {
					d.mem.Set("p/other", "1")
					want["other"] = "1"
				}
				d.run(s.Run)
				s.Complete()
				d.clean(s)
				caughtUp := func() {
					t.Helper()
					must(t, s.follower.Reach(d.ctx, d.mem.Position(), follow.AnyLists, "all"))
				}
				caughtUp()
				d.mem.Break(nil)
				d.mem.Unset("p/0")
				d.mem.Set("p/1", "changed")
				s.Put("2", []byte("2"))
				want["2"] = "2"
				d.until("p/", want)
				d.clean(s)
				caughtUp()
				if n := s.follower.Progress().Lists; n != 1 {
					t.Errorf("listed %d times", n)
				}
			})
		}
	}
}

// TestRefusedWritesAreTriedLessAndLessOften checks the retries of one key.
func TestRefusedWritesAreTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	f := newFailures()
	var waits []time.Duration
	for range 20 {
		f.add(7, now, errTooLarge)
		next, ok := f.next()
		if !ok {
			t.Fatal("nothing is due")
		}
		if _, ok := f.due(next.Add(-1)); ok {
			t.Fatal("it is due too early")
		}
		waits = append(waits, next.Sub(now))
		now = next
		if p, ok := f.due(now); !ok || p != 7 {
			t.Fatal("it is not due")
		}
	}
	if waits[0] != retryFirst || waits[1] != 2*retryFirst || waits[10] != 1024*retryFirst || waits[19] != retryLatest {
		t.Errorf("the pauses are %v", waits)
	}
	f.add(7, now, errTooLarge)
	f.renew(7, now.Add(time.Second)) // the key has another value
	if next, _ := f.next(); !next.Equal(now.Add(time.Second)) {
		t.Errorf("due at %v, want %v", next, now)
	}
	f.forget(7)
	if _, ok := f.next(); ok || f.has(7) {
		t.Error("it is not forgotten")
	}
}

// TestCleanWhileNothingCanBeReadAgain: a failed read does not make the keys count as not written.
func TestCleanWhileNothingCanBeReadAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	s := d.sync(Params{Prefix: "p/", Shared: true, Reassert: 10 * time.Millisecond})
	s.Put("a", []byte("1"))
	s.Complete()
	d.clean(s)
	reads := make(chan struct{})
	d.mem.SetFault(func(ctx context.Context, op, _ string) error {
		if op != "get" {
			return nil
		}
		select {
		case reads <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("lost")
	})
	for range 2 {
		<-reads
		d.clean(s)
	}
}
