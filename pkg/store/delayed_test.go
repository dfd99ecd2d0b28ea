package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestHeldBackMachine compares the delayed deletions with a naive model: a key is visible until it has been absent for
// the whole delay.
func TestHeldBackMachine(t *testing.T) {
	t.Parallel()
	const delay = 10
	rapid.Check(t, func(t *rapid.T) {
		h := newHeldBack[string]()
		now := time.Unix(0, 0)
		table := view{}                // the applied changes
		there := map[string]*string{}  // the contents of the kvstore
		gone := map[string]time.Time{} // the time of each deletion
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				name := names.Draw(t, "name")
				value := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
				if old := there[name]; old != nil && *old == value {
					return
				}
				ch := Change[string]{Name: name, Old: there[name], New: &value}
				there[name] = &value
				if ch, ok := h.change(ch, now.Add(delay), now); ok {
					if ch.Old != nil && *ch.Old == value {
						table[name] = "" // the key has an equal value again, in another object
					} else {
						table.apply(t, ch)
					}
					table[name] = value
				}
				delete(gone, name)
			},
			"delete": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if there[name] == nil {
					return
				}
				if _, ok := h.change(Change[string]{Name: name, Old: there[name]}, now.Add(delay), now); ok {
					t.Fatalf("the deletion of %s is applied at once", name)
				}
				delete(there, name)
				gone[name] = now
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, delay+1).Draw(t, "time")))
				for _, ch := range h.due(now) {
					table.apply(t, ch)
				}
				maps.DeleteFunc(gone, func(_ string, since time.Time) bool { return now.Sub(since) >= delay })
			},
			"": func(t *rapid.T) {
				want := map[string]string{}
				for name, value := range there {
					want[name] = *value
				}
				for name := range gone {
					want[name] = table[name] // the last value
				}
				if diff := cmp.Diff(want, map[string]string(table)); diff != "" {
					t.Fatalf("(-want +table):\n%s", diff)
				}
				next, more := h.next()
				if more != (len(gone) > 0) {
					t.Fatalf("%d are held back, next at %v (%t)", len(gone), next, more)
				}
				if first := slices.MinFunc(append(slices.Collect(maps.Values(gone)), now), time.Time.Compare); more && !h.since[0].asOf.Equal(first) {
					t.Fatalf("as of %s, and the first deletion was at %s", h.since[0].asOf, first)
				}
			},
		})
	})
}

func TestDeletionsAreDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var applied []string
		d := NewDelayed(30*time.Second, func(changes []Change[int]) {
			mu.Lock()
			defer mu.Unlock()
			for _, ch := range changes {
				text := func(v *int) string {
					if v == nil {
						return "-"
					}
					return fmt.Sprint(*v)
				}
				applied = append(applied, fmt.Sprintf("%s:%s>%s", ch.Name, text(ch.Old), text(ch.New)))
			}
		})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, applied); diff != "" {
				t.Fatalf("applied (-want +got):\n%s", diff)
			}
			applied = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		one, two := 1, 2
		change := func(name string, before, now *int) {
			d.Apply([]Change[int]{{Name: name, Old: before, New: now}}, time.Now())
		}
		change("a", nil, &one)
		change("b", nil, &one)
		expect("a:->1", "b:->1")
		change("a", &one, nil)
		<-time.After(10 * time.Second)
		change("b", &one, nil)
		expect()
		change("a", nil, &two) // the key exists again
		expect("a:1>2")
		<-time.After(29 * time.Second)
		expect()
		<-time.After(time.Second)
		expect("b:1>-")
		change("a", &two, nil)
		change("a", nil, &two) // the key exists again, with the same object
		expect()
		<-time.After(time.Hour)
		expect()
		change("a", &two, nil)
		d.Flush()
		expect("a:2>-")
		change("a", nil, &one)
		change("a", &one, nil)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		<-time.After(time.Minute)
		expect("a:->1") // stopping withdraws nothing
	})
}
