package kubernetes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAServerThatIsAwayForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t, &api{objects: map[string]string{"1": "a", "2": "a"}})
		defer f.stop()
		f.expect(t, "at first", time.Second, map[string]string{"1": "a", "2": "a"})
		before, _ := f.status()
		f.api.answers(errNoAnswer)
		f.api.lose("2")
		f.expect(t, "while it is away", 3*time.Hour, map[string]string{"1": "a", "2": "a"})
		if s, listed := f.status(); s.err == nil || !listed || !s.current.Equal(before.current) {
			t.Errorf("%+v, at first %+v", s, before)
		}
		asked := f.api.count()
		f.after(time.Hour)
		if n := f.api.count() - asked; n < 400 || n > 1500 {
			t.Errorf("asked %d times in an hour", n)
		}
		f.api.answers(nil)
		f.expect(t, "soon after it is back", 10*time.Second, map[string]string{"1": "a"})
		f.api.set("1", "b")
		f.expect(t, "after a change", time.Second, map[string]string{"1": "b"})
		if diff := cmp.Diff([]string{"ciliumidentities: no answer from the API server", "well"}, f.reported()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestItEndsAtOnceWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]time.Duration{"from the start": 0, "later": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &api{objects: map[string]string{"1": "a"}}
				if since == 0 {
					a.answers(errNoAnswer)
				}
				f := newFollowing(t, a)
				f.after(since)
				a.answers(errNoAnswer)
				f.after(10 * time.Minute)
				asked := time.Now()
				f.stop()
				if took := time.Since(asked); took > 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestItEndsSoonWhileTheServerEndsWatches: an API server that starts accepts watches, and ends them because its storage is
// not ready. A reflector pauses then, and does not look at its context.
func TestItEndsSoonWhileTheServerEndsWatches(t *testing.T) {
	t.Parallel()
	for after := range 12 {
		synctest.Test(t, func(t *testing.T) {
			f := newFollowing(t, &api{crowded: true})
			f.after(time.Duration(after) * 4 * time.Second)
			asked := time.Now()
			f.stop()
			if took := time.Since(asked); took > 4*time.Second {
				t.Errorf("after %d s it took %v", 4*after, took)
			}
			if n := f.api.count(); n > 3+3*after {
				t.Errorf("%d requests in %d s", n, 4*after)
			}
		})
	}
}

func TestAServerThatIsTooOldToStreamLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t, &api{lists: true, objects: map[string]string{"1": "a"}})
		defer f.stop()
		f.expect(t, "at first", time.Second, map[string]string{"1": "a"})
		f.api.set("2", "a")
		f.expect(t, "after a change", time.Second, map[string]string{"1": "a", "2": "a"})
		if len(f.reported()) != 0 {
			t.Errorf("reported as trouble: %v", f.reported())
		}
	})
}

func TestARefusalIsShownUntilItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &api{objects: map[string]string{"1": "a"}}
		a.answers(errForbidden)
		f := newFollowing(t, a)
		defer f.stop()
		f.expect(t, "while it is refused", time.Hour, map[string]string{})
		if s, listed := f.status(); listed || s.err == nil || len(f.reported()) != 1 {
			t.Errorf("%+v, reports %v", s, f.reported())
		}
		a.answers(nil)
		f.expect(t, "after it was allowed", 10*time.Second, map[string]string{"1": "a"})
		if s, listed := f.status(); !listed || s.err != nil || len(f.reported()) != 2 {
			t.Errorf("%+v, reports %v", s, f.reported())
		}
	})
}

func TestAKindWithoutADefinition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &api{objects: map[string]string{"1": "a"}}
		a.answers(errUndefined)
		f := newFollowing(t, a)
		defer f.stop()
		f.expect(t, "before it is defined", time.Second, map[string]string{})
		if s, listed := f.status(); !listed || s.err != nil {
			t.Errorf("%+v", s)
		}
		asked := a.count()
		f.after(time.Hour)
		if n := a.count() - asked; n < 40 || n > 70 {
			t.Errorf("looked for %d times in an hour", n)
		}
		a.answers(nil)
		f.expect(t, "after it was defined", 75*time.Second, map[string]string{"1": "a"})
		a.answers(errUndefined)
		f.expect(t, "before it counts as gone", 9*time.Second, map[string]string{"1": "a"})
		f.expect(t, "after it counts as gone", 5*time.Second, map[string]string{})
		if len(f.reported()) != 0 {
			t.Errorf("reports %v", f.reported())
		}
	})
}

func TestADefinitionThatIsMissedForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t, &api{objects: map[string]string{"1": "a"}})
		defer f.stop()
		f.expect(t, "at first", time.Second, map[string]string{"1": "a"})
		before := f.objects.Table().Revision(f.objects.Snapshot())
		for range 3 {
			f.api.answers(errUndefined)
			f.after(5 * time.Second)
			f.api.answers(nil)
			f.expect(t, "after it is back", time.Minute, map[string]string{"1": "a"})
		}
		if after := f.objects.Table().Revision(f.objects.Snapshot()); after != before {
			t.Error("its objects were written again")
		}
	})
}
