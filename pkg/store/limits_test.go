package store

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// text decodes every value except "bad".
func text(_ string, value []byte) (*string, error) {
	v := string(value)
	if v == "bad" {
		return nil, errors.New("bad")
	}
	return &v, nil
}

// put adds a value to the set and returns the result as text.
func put(s *Set[string], name, value string, rev int64) string {
	_, ok, err := s.Upsert([]byte(name), []byte(value), rev, text)
	switch {
	case err != nil:
		return string(reasonOf(err))
	case ok:
		return "change"
	}
	return "same"
}

func held(s *Set[string]) map[string]string {
	all := make(map[string]string)
	for p := range s.records.All() {
		if r := s.records.At(p); r.Obj != nil {
			all[r.Name] = *r.Obj
		}
	}
	return all
}

// TestLimits: known values are kept; a value beyond a limit is refused and counted.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := NewSet[string]()
	s.Limit(Limits{Share: budget.Share{Keys: 3, Bytes: 30}, Value: 8})
	rev := int64(0)
	step := func(name, value, want string) {
		t.Helper()
		rev++
		if got := put(s, name, value, rev); got != want {
			t.Errorf("%s=%s: %s, want %s", name, value, got, want)
		}
	}
	step("a", "one", "change")
	step("b", "123456789", "budget")
	step("c", "two", "change")
	step("d", "three", "budget")
	if got := s.Over(); got != OverKeys|OverValue || s.Rejected() != 2 || s.Rejections()[wire.ReasonBudget] != 2 {
		t.Errorf("over %s, %d refused: %v", got, s.Rejected(), s.Rejections())
	}
	step("a", "12345678", "change")
	step("a", "123456789", "budget")
	if got := held(s); !maps.Equal(got, map[string]string{"a": "12345678", "c": "two"}) {
		t.Errorf("held: %v", got)
	}
	step("a", "12345678", "same")
	rev++
	if _, gone := s.Delete([]byte("b"), rev); gone {
		t.Error("a refused value was in force")
	}
	step("e", "12345678", "change")
	step("c", "1234567", "change")
	s.Limit(Limits{Share: budget.Share{Bytes: 26}})
	step("c", "12345678", "budget") // the set would have 27 bytes
	step("f", "", "budget")
	if got := s.Over(); got&OverBytes == 0 {
		t.Errorf("over %s", got)
	}

	// After the limit is raised, a list accepts everything, and clears the refused keys.
	s.Limit(Limits{})
	s.Begin()
	for name, value := range map[string]string{"a": "12345678", "c": "12345678", "d": "three", "e": "12345678"} {
		rev++
		put(s, name, value, rev)
	}
	for range s.Done() { //nolint:revive // run to its end
	}
	if s.Over() != 0 || s.Rejected() != 0 || len(held(s)) != 4 || s.size != 9+9+6+9 {
		t.Errorf("over %s, %d refused, held %v, %d bytes", s.Over(), s.Rejected(), held(s), s.size)
	}
	for range s.Drain() { //nolint:revive // run to its end
	}
	if s.size != 0 {
		t.Errorf("%d bytes are left after all was withdrawn", s.size)
	}
}

// TestRecheck: in the next list, every value counts as new.
func TestRecheck(t *testing.T) {
	t.Parallel()
	s := NewSet[string]()
	put(s, "a", "one", 1)
	put(s, "b", "bad", 2)
	s.Recheck()
	s.Begin()
	if got := put(s, "a", "one", 1); got != "change" {
		t.Errorf("a: %s", got)
	}
	if got := put(s, "b", "bad", 2); got != "malformed" {
		t.Errorf("b: %s", got)
	}
	if s.Rejected() != 1 || len(held(s)) != 1 {
		t.Errorf("%d refused, held %v", s.Rejected(), held(s))
	}
}

// TestWhatIsRefusedCostsLittle: the memory stays small with many invalid values, with long names, and with invalid
// values that change.
func TestWhatIsRefusedCostsLittle(t *testing.T) { //nolint:paralleltest // it measures the heap
	share := budget.Default().Share(wire.IPs)
	for name, key := range map[string]func(i int) string{
		"short names": func(i int) string { return fmt.Sprint(i) },
		"long names":  func(i int) string { return fmt.Sprint(i, strings.Repeat("x", wire.MaxName-10)) },
		"too long":    func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 3*wire.MaxName)) },
	} {
		s := NewSet[string]()
		s.Limit(Limits{Share: share})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const n = 100_000
		for i := range n {
			put(s, key(i), "bad", int64(i+1))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if cost := int(after.HeapAlloc) - int(before.HeapAlloc); cost > 48<<20 {
			t.Errorf("%s: %d MiB", name, cost>>20)
		}
		if s.Rejected() != n {
			t.Errorf("%s: %d refused, want %d", name, s.Rejected(), n)
		}
	}
}

// TestAWatchOverItsLimitsListsAgain: the watch lacks keys that the server has, so a comparison would fail without
// proving anything about the server.
func TestAWatchOverItsLimitsListsAgain(t *testing.T) {
	t.Parallel()
	w := newRig(t).w
	w.set.Limit(Limits{Share: budget.Share{Keys: 1}})
	put(w.set, "a", "one", 1)
	if len((keeper[string]{w}).Proofs()) == 0 {
		t.Error("nothing is missing, and there is no proof")
	}
	put(w.set, "b", "two", 2)
	if len((keeper[string]{w}).Proofs()) > 0 {
		t.Error("a key is missing, and the server is asked to agree")
	}
}
