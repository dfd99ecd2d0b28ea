package kubernetes

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An API server whose etcd sends it no progress sends no bookmarks (test/kubernetes shows it on a real one).
func TestAQuietKindIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]bool{"by an API server that streams lists": false, "by an older one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollowing(t, &api{objects: map[string]string{"1": "a"}, lists: lists})
				defer f.stop()
				f.after(time.Second)
				asked := f.api.count()
				var oldest time.Duration
				for range 3600 {
					f.after(time.Second)
					oldest = max(oldest, f.age())
				}
				if oldest > 2*quiet {
					t.Errorf("a quiet kind was not confirmed for %s", oldest)
				}
				if n := f.api.count() - asked; n > 60 {
					t.Errorf("asked %d times in an hour", n)
				}
			})
		})
	}
}

func TestAKindThatIsHeardOfIsNotAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t, &api{objects: map[string]string{"1": "a"}})
		defer f.stop()
		f.after(time.Second)
		asked := f.api.count()
		for range 60 {
			f.api.bookmark()
			f.after(time.Minute)
		}
		if n := f.api.count() - asked; n > 0 {
			t.Errorf("asked %d times in an hour of bookmarks", n)
		}
		if f.age() > time.Minute {
			t.Errorf("it is known as of %s ago", f.age())
		}
	})
}

func TestWhatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*following){
		"the API server does not answer": func(f *following) { f.api.refuse(errNoAnswer) },
		"it answers with an error":       func(f *following) { f.api.refuse(errors.New("etcd is away")) },
		"the watch ends, and no other begins": func(f *following) {
			f.api.mu.Lock()
			defer f.api.mu.Unlock()
			f.api.unwatched = true
			f.api.breakWatches()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollowing(t, &api{objects: map[string]string{"1": "a"}})
				defer f.stop()
				f.after(time.Second)
				happens(f)
				f.after(10 * time.Second)
				before := f.age()
				f.after(time.Hour)
				if grown := f.age() - before; grown < time.Hour {
					t.Errorf("in an hour it became %s older", grown)
				}
			})
		})
	}
}

// Events that the watch still brings after the answer are in the table before the time is.
func TestAChangeBeforeTheAnswerIsAppliedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t, &api{objects: map[string]string{"1": "a"}})
		defer f.stop()
		f.after(time.Second)
		for i := range 1000 {
			at := time.Now()
			label := string(rune('a' + i%20))
			f.api.set("1", label)
			for f.after(7 * time.Second); f.age() >= time.Since(at); f.after(time.Second) {
				if time.Since(at) > 3*quiet {
					t.Fatalf("round %d: it is known as of %s ago, the change was %s ago", i, f.age(), time.Since(at))
				}
			}
			if got := f.after(0)["1"]; got != label {
				t.Fatalf("round %d: %q is in the table as of %s ago, %q was written %s ago", i, got, f.age(), label, time.Since(at))
			}
		}
	})
}
