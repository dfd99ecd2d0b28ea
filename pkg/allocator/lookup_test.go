package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestMappingsAgainstModel: if several IDs have the same key, the lowest is the key's ID.
func TestMappingsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, model := newMappings(), make(map[uint64]string)
		id, text := rapid.Uint64Range(1, 8), rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n, key := id.Draw(t, "id"), text.Draw(t, "key")
				old := m.set(n, textKey(key))
				if fmt.Sprint(old) != fmt.Sprint(keyOrNil(model[n])) {
					t.Fatalf("%d was %v, not %q", n, old, model[n])
				}
				model[n] = key
			},
			"delete": func(t *rapid.T) {
				n := id.Draw(t, "id")
				if old := m.delete(n); fmt.Sprint(old) != fmt.Sprint(keyOrNil(model[n])) {
					t.Fatalf("%d was %v, not %q", n, old, model[n])
				}
				delete(model, n)
			},
			"": func(t *rapid.T) {
				least, times := make(map[string]uint64), make(map[string]int)
				for _, n := range slices.Sorted(maps.Keys(model)) {
					if times[model[n]]++; least[model[n]] == NoID {
						least[model[n]] = n
					}
				}
				for _, key := range []string{"a", "b", "c"} {
					if m.id(key) != least[key] || len(m.more[key]) != max(times[key]-1, 0) {
						t.Fatalf("%s is %d and %v, want %d of %v", key, m.id(key), m.more[key], least[key], model)
					}
				}
				got := make(map[uint64]string)
				for n, key := range m.all() {
					got[n] = key.GetKey()
				}
				if !maps.Equal(got, model) || len(m.ids) != len(least) {
					t.Fatalf("got %v, want %v", got, model)
				}
			},
		})
	})
}

func keyOrNil(text string) Key {
	if text == "" {
		return nil
	}
	return textKey(text)
}

// TestLookups: lookups use the own cache first, then the remote ones, then the backend.
func TestLookups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newMemoryStore()
		s.behind(func() { s.set(1, "seen") })
		b := s.backend("n")
		b.blind = true
		b.setFault(blockOn("watch")) // from now on the cache is outdated
		a := running(t, b, WithMax(100))
		synctest.Wait()
		s.behind(func() {
			s.set(2, "unseen")
			s.refs["unseen"] = map[string]uint64{"other": 2}
		})
		far := newMemoryStore()
		far.behind(func() { far.set(3, "remote") })
		rc := a.WatchRemoteKVStore("far", far.backend("x"), nil)
		watched(t, rc)
		used := mustAllocate(t, a, "used")

		type ask func(context.Context, Key) (uint64, error)
		type askByID func(context.Context, uint64) (Key, error)
		underLock := func(ctx context.Context, key Key) (uint64, error) {
			lock, err := b.Lock(ctx, key)
			if err != nil {
				return NoID, err
			}
			defer lock.Unlock()
			return a.GetIfLocked(ctx, key, lock)
		}
		byID := map[uint64]string{1: "seen", 2: "unseen", 3: "remote", used: "used"}
		for id, text := range byID {
			for name, f := range map[string]ask{"Get": a.Get, "GetIfLocked": underLock, "GetIncludeRemoteCaches": a.GetIncludeRemoteCaches, "GetNoCache": a.GetNoCache} {
				want := id
				if text == "remote" && name != "GetIncludeRemoteCaches" || text == "seen" && name == "GetNoCache" {
					want = NoID // it has no reference
				}
				if got, err := f(t.Context(), textKey(text)); err != nil || got != want {
					t.Errorf("%s(%s) = %d, %v, want %d", name, text, got, err, want)
				}
			}
			for name, f := range map[string]askByID{"GetByID": a.GetByID, "GetByIDIncludeRemoteCaches": a.GetByIDIncludeRemoteCaches} {
				want := keyOrNil(text)
				if text == "remote" && name == "GetByID" {
					want = nil
				}
				if got, err := f(t.Context(), id); err != nil || got != want {
					t.Errorf("%s(%d) = %v, %v, want %v", name, id, got, err, want)
				}
			}
		}
		for _, op := range []string{"get", "get by ID"} {
			b.setFault(failOn(op, false, errAway))
			_, err := a.Get(t.Context(), textKey("unknown"))
			_, err2 := a.GetByIDIncludeRemoteCaches(t.Context(), 101) // an ID without a mapping
			if !errors.Is(errors.Join(err, err2), errAway) {
				t.Errorf("%s: no error of the backend", op)
			}
		}
		lock, err := b.Lock(t.Context(), textKey("unknown"))
		must(t, err)
		lock.Unlock()
		if _, err := a.GetIfLocked(t.Context(), textKey("unknown"), lock); err == nil {
			t.Error("the lock is not held, and no error")
		}
	})
}
