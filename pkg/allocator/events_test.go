package allocator

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func text(ev AllocatorEvent) string {
	if ev.Type == EventListDone {
		return ev.Type.String()
	}
	return fmt.Sprintf("%s %d %s", ev.Type, ev.ID, ev.Key)
}

// TestEvents: events arrive in the order of the store, and the channel is closed when the allocator stops.
func TestEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() {
			s.set(5, "a")
			s.set(3, "b")
		})
		a, stop := started(t, s.backend("n"), WithEvents())
		wants := func(want ...string) {
			t.Helper()
			for _, w := range want {
				if got := text(<-a.GetEvents()); got != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
		}
		wants("create 3 b", "create 5 a", "list done")
		s.behind(func() { s.set(9, "c") })
		wants("create 9 c")
		s.behind(func() { s.set(3, "d") })
		wants("modify 3 d")
		watcher{a}.OnUpsert(3, textKey("d")) // seen again
		s.behind(func() { s.set(3, "") })
		wants("delete 3 d")
		stop()
		if ev, ok := <-a.GetEvents(); ok {
			t.Errorf("after the end: %s", text(ev))
		}
	})
}

// TestEventsUnread: the watch continues when no one reads the events. A later reader receives the difference to the
// events sent before.
func TestEventsUnread(t *testing.T) {
	onStore(t, func(t *testing.T, s *memoryStore, b *memoryBackend, a *Allocator) {
		if got := text(<-a.GetEvents()); got != "list done" {
			t.Errorf("got %q", got)
		}
		s.behind(func() { s.set(1, "first") })
		synctest.Wait() // the event is waiting to be read
		const rounds = 10_000
		for n := range rounds {
			s.behind(func() {
				s.set(uint64(n%10+1), fmt.Sprint("key", n))
				if n%10 == 9 {
					s.set(10, "")
				}
			})
		}
		synctest.Wait()
		if id, err := a.Get(t.Context(), textKey(fmt.Sprint("key", rounds-2))); err != nil || id != 9 {
			t.Errorf("the watch has not gone on: %d, %v", id, err)
		}
		if got := text(<-a.GetEvents()); got != "create 1 first" {
			t.Errorf("got %q", got)
		}
		for n := uint64(1); n <= 9; n++ {
			what := "create"
			if n == 1 {
				what = "modify"
			}
			want := fmt.Sprintf("%s %d key%d", what, n, rounds-11+int(n))
			if got := text(<-a.GetEvents()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		synctest.Wait()
		select {
		case ev := <-a.GetEvents():
			t.Errorf("one more: %s", text(ev))
		default:
		}
	}, WithEvents())
}

// TestEventsAgainstModel: for a reader of any speed, the events add up to the current mappings. Each event is valid
// after the events before it, and at most one event of each ID waits.
func TestEventsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := newEvents()
		there, known := make(map[uint64]Key), make(map[uint64]Key)
		var order []uint64 // IDs, by their latest events
		read := func() bool {
			ev, ok := e.pop()
			if !ok {
				return false
			}
			_, exists := known[ev.ID]
			if exists != (ev.Type != EventCreate) {
				t.Fatalf("%s, and the reader knows %v", text(ev), known)
			}
			if known[ev.ID] = ev.Key; ev.Type == EventDelete {
				delete(known, ev.ID)
			}
			at := slices.Index(order, ev.ID)
			for _, before := range order[:at] {
				if e.waiting[eventOf{id: before}] != nil {
					t.Fatalf("%d came before %d, which is older", ev.ID, before)
				}
			}
			return true
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				ev := AllocatorEvent{ID: rapid.Uint64Range(1, 4).Draw(t, "id"), Key: textKey(rapid.StringN(1, 3, 3).Draw(t, "key"))}
				_, was := there[ev.ID]
				switch {
				case was && rapid.Bool().Draw(t, "delete"):
					ev.Type = EventDelete
					delete(there, ev.ID)
				default:
					if was {
						ev.Type = EventModify
					}
					there[ev.ID] = ev.Key
				}
				order = append(slices.DeleteFunc(order, func(id uint64) bool { return id == ev.ID }), ev.ID)
				e.push(ev)
				if e.queue.Len() != len(e.waiting) || e.queue.Len() > 4 {
					t.Fatalf("%d events wait, of %d IDs", e.queue.Len(), len(e.waiting))
				}
			},
			"read": func(*rapid.T) { read() },
		})
		for read() {
		}
		if fmt.Sprint(known) != fmt.Sprint(there) {
			t.Fatalf("the reader knows %v, there are %v", known, there)
		}
	})
}
