package store

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// thing is an object whose memory cost is its value.
type thing struct{ cost int }

func (t *thing) Cost() int { return t.cost }

func decodeThing(_ string, value []byte) (*thing, error) {
	t := new(thing)
	_, err := fmt.Sscan(string(value), &t.cost)
	return t, err
}

// TestMemoryOfValuesIsCounted: the values in force are counted once, and their memory is returned each way a value can
// be removed.
func TestMemoryOfValuesIsCounted(t *testing.T) {
	t.Parallel()
	const record = 128
	memory := budget.NewMemory(3000)
	other := memory.Account("other")
	account := memory.Account("c")
	s := NewSet[thing]()
	s.Limit(Limits{Memory: account})
	rev := int64(0)
	put := func(name, value string) error {
		rev++
		_, _, err := s.Upsert([]byte(name), []byte(value), rev, decodeThing)
		return err
	}
	expect := func(what string, want int64) {
		t.Helper()
		if used := account.Used(); used != want {
			t.Errorf("%s: %d bytes are counted, want %d", what, used, want)
		}
	}
	for name, value := range map[string]string{"a": "100", "b": "200", "c": "x"} {
		if err := put(name, value); (err != nil) != (value == "x") {
			t.Fatal(err)
		}
	}
	expect("two values, and one that is refused", 300+2*record)
	_ = put("a", "150")
	_ = put("b", "x")
	expect("a larger value, and one that is refused: the one before stays in force", 350+2*record)
	if err := put("d", "1400"); overOf(err) != OverMemory || s.Over() != OverMemory || !s.Lacks() {
		t.Errorf("more than there is for everybody: %v, %s", err, s.Over())
	}
	expect("what is refused", 350+2*record)
	s.Delete([]byte("a"), 99)
	expect("a deletion", 200+record)
	if err := put("d", "1400"); err != nil {
		t.Errorf("there is room now: %v", err)
	}
	other.Add(500)
	if err := put("e", "10"); overOf(err) != OverMemory {
		t.Errorf("the shared memory is used up: %v", err)
	}
	s.Begin()
	_, _, _ = s.Upsert([]byte("b"), []byte("x"), 200, decodeThing)
	for range s.Done() {
	}
	expect("what a list did not have, and a value in force that it had refused", 0)
	_ = put("f", "77")
	for range s.Drain() {
	}
	expect("drained", 0)
}
