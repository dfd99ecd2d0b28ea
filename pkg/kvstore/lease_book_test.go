package kvstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func day(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }

// tie writes a key with a lease that has room.
func (b *leaseBook) tie(t *testing.T, key string, rev int64) int64 {
	t.Helper()
	id, ok := b.attach(key)
	if !ok {
		t.Fatalf("no room for %s", key)
	}
	b.record(key, id, tied, rev)
	return id
}

func TestLeaseBookFillsLeases(t *testing.T) {
	t.Parallel()
	b := newLeaseBook()
	if _, ok := b.attach("k"); ok {
		t.Fatal("a lease out of nothing")
	}
	b.add(1, time.Minute, day(0))
	for i := range keysPerLease {
		if id := b.tie(t, fmt.Sprintf("p/%04d", i), 2); id != 1 {
			t.Fatalf("key %d is tied to %d", i, id)
		}
	}
	if _, ok := b.attach("one more"); ok {
		t.Error("a lease has more keys than it may")
	}
	if id := b.tie(t, "p/0000", 3); id != 1 {
		t.Errorf("a key of a full lease is tied to %d", id)
	}
	b.detach("p/0001", 3)
	if id := b.tie(t, "instead", 4); id != 1 {
		t.Errorf("the place that became free is not used, but %d", id)
	}
	b.add(2, time.Minute, day(1))
	if id := b.tie(t, "one more", 4); id != 2 {
		t.Errorf("tied to %d", id)
	}
	if keys := b.end(1)[1]; len(keys) != keysPerLease || keys[0] != "instead" || !slices.IsSorted(keys) {
		t.Errorf("%d keys, the first is %s", len(keys), keys[0])
	}
	if keys := b.end(1)[1]; keys != nil {
		t.Errorf("ended twice: %v", keys)
	}
	if id := b.tie(t, "p/0000", 5); id != 2 {
		t.Errorf("after its lease has ended the key is tied to %d", id)
	}
}

func TestLeaseBookOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(b *leaseBook)
		want []string
	}{
		{"a write that is under way may have been made", func(b *leaseBook) { b.attach("k") }, []string{"k"}},
		{"one that was made", func(b *leaseBook) { b.attach("k"); b.record("k", 1, tied, 5) }, []string{"k"}},
		{"one that was not made", func(b *leaseBook) { b.attach("k"); b.record("k", 1, untied, 0) }, nil},
		{"one of which nobody knows", func(b *leaseBook) { b.attach("k"); b.record("k", 1, unknown, 0) }, []string{"k"}},
		{"not made, but an earlier one was", func(b *leaseBook) {
			b.attach("k")
			b.attach("k")
			b.record("k", 1, tied, 5)
			b.record("k", 1, untied, 0)
		}, []string{"k"}},
		{"deleted", func(b *leaseBook) { b.attach("k"); b.record("k", 1, tied, 5); b.detach("k", 6) }, nil},
		{"deleted after nobody knew", func(b *leaseBook) { b.attach("k"); b.record("k", 1, unknown, 0); b.detach("k", 6) }, nil},
		{"deleted before it was written", func(b *leaseBook) { b.attach("k"); b.record("k", 1, tied, 5); b.detach("k", 4) }, []string{"k"}},
		{"deleted while it is written", func(b *leaseBook) { b.attach("k"); b.detach("k", 4); b.record("k", 1, tied, 5) }, []string{"k"}},
		{"deleted with others", func(b *leaseBook) {
			for _, k := range []string{"p/a", "p/b", "p", "p0"} {
				b.attach(k)
				b.record(k, 1, tied, 5)
			}
			b.detachAll("p/", 6)
		}, []string{"p", "p0"}},
		{"an unknown key is deleted", func(b *leaseBook) { b.detach("k", 6) }, nil},
	} {
		b := newLeaseBook()
		b.add(1, time.Minute, day(0))
		c.do(&b)
		if diff := cmp.Diff(c.want, b.end(1)[1]); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		b.record("k", 1, tied, 9) // too late
		if len(b.of) != 0 || len(b.leases) != 0 {
			t.Errorf("%s: left %v", c.name, b)
		}
	}
}

func TestLeaseBookTimes(t *testing.T) {
	t.Parallel()
	b := newLeaseBook()
	dueAt := func(at int, want []int64, next time.Time) {
		t.Helper()
		ids, n := b.due(day(at))
		if !slices.Equal(ids, want) || !n.Equal(next) {
			t.Errorf("at %d: %v, then at %s; want %v, then at %s", at, ids, n, want, next)
		}
	}
	dueAt(0, nil, time.Time{})
	b.add(1, 30*time.Second, day(0))
	b.add(2, 60*time.Second, day(0))
	dueAt(0, nil, day(10))
	dueAt(10, []int64{1}, day(20))
	b.kept(1, day(10))
	dueAt(20, []int64{1, 2}, time.Time{})
	if over := b.unanswered([]int64{1, 2, 3}, day(20)); over != nil {
		t.Errorf("over: %v", over)
	}
	dueAt(20, nil, day(23))
	if over := b.unanswered([]int64{1, 2}, day(40)); over != nil { // 1 was answered at 10
		t.Errorf("over: %v", over)
	}
	if over := b.unanswered([]int64{1, 2}, day(41)); !slices.Equal(over, []int64{1}) {
		t.Errorf("over: %v", over)
	}
	b.kept(2, day(42))
	b.allDue()
	dueAt(42, []int64{1, 2}, time.Time{})
}

// TestLeaseBookAgainstModel: in any order of operations, each tied key is reported once
// when its lease ends, and no lease has too many keys.
func TestLeaseBookAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newLeaseBook()
		model := make(map[string]int64) // key to lease
		rev, last := int64(1), int64(0)
		key := rapid.SampledFrom([]string{"a", "b", "p/a", "p/b", "p/c"})
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(*rapid.T) { last++; b.add(last, time.Minute, day(0)) },
			"put": func(t *rapid.T) {
				k := key.Draw(t, "key")
				id, ok := b.attach(k)
				if ok != (len(b.leases) > 0) {
					t.Fatalf("attached: %t", ok)
				}
				if !ok {
					return
				}
				if was, ok := model[k]; ok && was != id {
					t.Fatalf("%s is tied to %d, and was to %d, which has not ended", k, id, was)
				}
				rev++
				b.record(k, id, tied, rev)
				model[k] = id
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				rev++
				b.detach(k, rev)
				delete(model, k)
			},
			"end": func(t *rapid.T) {
				id := rapid.Int64Range(1, 5).Draw(t, "lease")
				var want []string
				for k, of := range model {
					if of == id {
						want = append(want, k)
						delete(model, k)
					}
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, b.end(id)[id]); diff != "" {
					t.Fatal(diff)
				}
			},
			"": func(t *rapid.T) {
				if len(b.of) != len(model) {
					t.Fatalf("%d keys tied, want %d", len(b.of), len(model))
				}
			},
		})
	})
}
