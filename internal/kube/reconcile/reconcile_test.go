package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cilium/statedb"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steps write each name, some of which fail.
type steps struct {
	Work
	fails  map[string]bool
	begin  time.Time
	rounds []time.Duration // when there were rounds
	news   int
	said   string
}

func (s *steps) Look(context.Context, time.Time) {}

func (s *steps) Gather(statedb.ReadTxn) *statedb.WatchSet {
	return statedb.NewWatchSet()
}

func (s *steps) Round(ctx context.Context, _ statedb.ReadTxn, now time.Time) {
	s.rounds = append(s.rounds, now.Sub(s.begin))
	names := s.Take(0)
	if CarryOut(ctx, &s.Work, now, 2, names, func(name string) (string, bool) { return name, true }, func(_ context.Context, name string) error {
		if s.fails[name] {
			return errors.New("refused")
		}
		return nil
	}) {
		s.news++
	}
}

func (s *steps) ReportProblems() {
	s.said = ""
	if err := s.Failed("names are not written"); err != nil {
		s.said = err.Error()
	}
}

// TestWhatFailsIsTriedAgain: after pauses that double, and it is news once.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &steps{Work: New(nil), fails: map[string]bool{"b": true, "c": true}, begin: time.Now()}
		for _, name := range []string{"a", "b", "c"} {
			s.Touch(name)
		}
		run := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := Run(ctx, statedb.New(), time.Millisecond, &s.Work, s); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v", err)
			}
		}
		run()
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(s.rounds, want) {
			t.Errorf("rounds at %v, want %v", s.rounds, want)
		}
		if want := "2 names are not written, such as b: refused"; s.said != want || s.news != 1 || s.Clean() {
			t.Errorf("it says %q, %d times news, clean %t", s.said, s.news, s.Clean())
		}
		clear(s.fails)
		run()
		if s.said != "" || !s.Clean() || len(s.rounds) != 5 {
			t.Errorf("it says %q, clean %t, rounds at %v", s.said, s.Clean(), s.rounds)
		}
	})
}

func TestRemotes(t *testing.T) {
	t.Parallel()
	w := New(nil)
	all := []Remote{{Name: "b"}, {Name: "a"}, {Name: "c", Read: true}}
	if !w.SetRemotes(all) || w.SetRemotes(all) {
		t.Error("it does not say whether they changed")
	}
	if !slices.Equal(w.Unread(), []string{"a", "b"}) {
		t.Errorf("unread: %v", w.Unread())
	}
	for name, keeps := range map[string]bool{"a": true, "c": false, "gone": false} {
		if w.Keeps(name) != keeps {
			t.Errorf("%s is kept: %t", name, !keeps)
		}
	}
}

func TestTakeIsBounded(t *testing.T) {
	t.Parallel()
	w := New(nil)
	for _, name := range []string{"c", "a", "b"} {
		w.Touch(name)
	}
	first := w.Take(2)
	if all := append(first, w.Take(2)...); len(first) != 2 || !slices.IsSorted(first) || len(all) != 3 || !w.Clean() {
		t.Errorf("took %v of %v", first, all)
	}
}

// A panic in the plan for one name, or while it is written, fails that name alone, which is tried again.
func TestAPanicEndsTheWorkForOneNameAlone(t *testing.T) {
	t.Parallel()
	var objects []any
	w := New(func(f func() error, attributes ...any) error {
		err := guard.Run(f)
		if err != nil {
			objects = append(objects, attributes[1])
		}
		return err
	})
	var mu sync.Mutex
	var written []string
	names := []string{"bad/plan", "bad/write", "shop/a", "shop/b", "shop/nothing"}
	CarryOut(t.Context(), &w, time.Now(), 1, names, func(name string) (string, bool) {
		if name == "bad/plan" {
			panic("a plan")
		}
		return name, name != "shop/nothing"
	}, func(_ context.Context, name string) error {
		if name == "bad/write" {
			panic("a write")
		}
		mu.Lock()
		defer mu.Unlock()
		written = append(written, name)
		return nil
	})
	if want := []string{"shop/a", "shop/b"}; !slices.Equal(written, want) {
		t.Errorf("written: %q, want %q", written, want)
	}
	if err := w.Failed("names are not written"); err == nil || len(w.failed) != 2 || len(objects) != 2 || objects[0] != "bad/plan" || objects[1] != "bad/write" {
		t.Errorf("failed: %v, reported for %v", err, objects)
	}
}
