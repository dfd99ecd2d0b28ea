package allocator

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestRefusedOwnMappings: a refused mapping appears in no lookup and no event. Its ID is taken, and a valid mapping
// that it replaced stays in force.
func TestRefusedOwnMappings(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() {
			s.set(1, "good")
			s.set(2, "bad")
		})
		var log bytes.Buffer
		reg := prometheus.NewPedanticRegistry()
		a := running(t, s.backend("n"), WithMax(3), WithEvents(), WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithMetrics(NewMetrics(reg)),
			WithValidator(func(id uint64, key Key) error {
				if strings.HasPrefix(key.GetKey(), "bad") {
					return fmt.Errorf("%d is bad", id)
				}
				return nil
			}))
		wants := func(when, all string, refused int) {
			t.Helper()
			synctest.Wait()
			if got := everything(a); got != all {
				t.Errorf("%s: got %q, want %q", when, got, all)
			}
			want := fmt.Sprintf("# HELP mesh_agent_allocator_refused_own_total Mappings of the own cluster that were refused.\n"+
				"# TYPE mesh_agent_allocator_refused_own_total counter\nmesh_agent_allocator_refused_own_total %d\n", refused)
			if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "mesh_agent_allocator_refused_own_total"); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		wants("listed", "1=good", 1)
		if !strings.Contains(log.String(), "Refused a mapping of the own cluster") || !strings.Contains(log.String(), "2 is bad") {
			t.Errorf("logged %s", &log)
		}
		for name, ask := range map[string]func() (any, error){
			"the key":           func() (any, error) { return a.GetByID(t.Context(), 2) },
			"the key, anywhere": func() (any, error) { return a.GetByIDIncludeRemoteCaches(t.Context(), 2) },
		} {
			if got, err := ask(); got != nil || err != nil {
				t.Errorf("%s of what was refused is %v, %v", name, got, err)
			}
		}
		s.behind(func() { s.refs["bad"] = map[string]uint64{"other": 2} })
		if id, err := a.Get(t.Context(), textKey("bad")); id != NoID || err != nil {
			t.Errorf("the ID of what was refused is %d, %v", id, err)
		}
		if id, err := a.GetNoCache(t.Context(), textKey("bad")); id != NoID || err != nil {
			t.Errorf("and in the store %d, %v", id, err)
		}
		if id := mustAllocate(t, a, "new"); id != 3 {
			t.Errorf("allocated %d, although all but 3 are taken", id)
		}
		if _, _, _, err := a.Allocate(t.Context(), textKey("another")); !errors.Is(err, ErrNoFreeID) {
			t.Errorf("and then %v", err)
		}
		s.behind(func() { s.set(1, "bad too") })
		wants("altered to one that is refused", "1=good 3=new", 2)
		s.behind(func() { s.set(1, "better") })
		wants("and to one that is not", "1=better 3=new", 2)
		s.behind(func() {
			s.set(1, "bad again")
			s.set(2, "")
		})
		wants("deleted", "1=better 3=new", 3)
		if id := mustAllocate(t, a, "another"); id != 2 {
			t.Errorf("the ID of one that was deleted is not free: %d", id)
		}
		s.behind(func() { s.set(1, "") })
		wants("deleted after it was altered", "2=another 3=new", 3)
		var seen []string
		for len(a.GetEvents()) > 0 || len(seen) < 4 {
			ev := <-a.GetEvents()
			seen = append(seen, fmt.Sprint(ev.Type, " ", ev.ID, " ", ev.Key))
		}
		for _, ev := range seen {
			if strings.Contains(ev, "bad") {
				t.Errorf("seen %q", seen)
			}
		}
	})
}

// TestRefusedMappingOfAKeyInUse: the mapping of a key in use is altered to a refused one, and is restored.
func TestRefusedMappingOfAKeyInUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		a := running(t, s.backend("n"), WithMax(9), WithMasterKeyProtection(), WithValidator(func(_ uint64, key Key) error {
			if key.GetKey() == "bad" {
				return errors.New("bad")
			}
			return nil
		}))
		id := mustAllocate(t, a, "k")
		s.behind(func() { s.set(id, "bad") })
		wantContents(t, s, fmt.Sprintf("%d=k k/n=%d", id, id))
		if got := everything(a); got != fmt.Sprintf("%d=k", id) {
			t.Errorf("got %q", got)
		}
	})
}

// TestOnSync: it is called once, when lookups use the first list, and not for a cache that was replaced or closed.
func TestOnSync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		far := newMemoryStore()
		far.behind(func() { far.set(1, "a") })
		a := running(t, newMemoryStore().backend("n"))
		var found []string
		watch := func(name string) *RemoteCache {
			var rc *RemoteCache
			rc = a.WatchRemoteKVStore("far", far.backend("x"), nil, OnSync(func() {
				found = append(found, fmt.Sprint(name, " ", rc.Synced(), " ", everything(a)))
			}))
			return rc
		}
		first := watch("first")
		if len(found) != 0 {
			t.Error("called before the watch")
		}
		stop := watched(t, first)
		far.behind(func() { far.set(2, "b") })
		synctest.Wait()
		stop()
		replaced, latest := watch("replaced"), watch("latest")
		watched(t, replaced)
		watched(t, latest)
		closed := watch("closed")
		closed.Close()
		watched(t, closed)
		if got := strings.Join(found, "; "); got != "first true 1=a; latest true 1=a 2=b" {
			t.Errorf("called: %s", got)
		}
	})
}
