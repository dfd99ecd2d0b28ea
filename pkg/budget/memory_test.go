package budget

import (
	"sync"
	"testing"
)

// TestMemoryIsShared: the first cluster gets two thirds, and every other cluster gets a share of the last third.
func TestMemoryIsShared(t *testing.T) {
	t.Parallel()
	m := NewMemory(900)
	greedy, late := m.Account("greedy"), m.Account("late")
	fill := func(a *Account) (n int64) {
		for a.Add(10) {
			n += 10
		}
		return n
	}
	if n := fill(greedy); n != 600 || greedy.Used() != 600 {
		t.Errorf("the first one gets %d, want 600", n)
	}
	if n := fill(late); n != 150 {
		t.Errorf("the second one gets %d, want its half of the last third", n)
	}
	if greedy.Add(1) || !greedy.Add(0) || !greedy.Add(-100) || greedy.Used() != 500 {
		t.Errorf("the first one has %d after it gave back 100", greedy.Used())
	}
	if late.Add(10) {
		t.Error("what was given back is beyond the two thirds still")
	}
	greedy.Add(-200)
	if n := fill(late); n != 150 {
		t.Errorf("the second one gets %d more, want what the first one gave back", n)
	}
	if m.Account("late") != late {
		t.Error("a cluster has two accounts")
	}
	m.Close("late")
	m.Close("unknown")
	if n := fill(greedy); n != 300 {
		t.Errorf("the first one gets %d more when the other one has gone, want 300", n)
	}
}

func TestMemoryWithoutABound(t *testing.T) {
	t.Parallel()
	var none *Memory
	none.Close("a")
	for name, a := range map[string]*Account{"no memory": none.Account("a"), "no bound": NewMemory(0).Account("a")} {
		if !a.Add(1<<50) || !a.Fits(1<<50) {
			t.Errorf("%s: there is a bound", name)
		}
	}
	if none.Account("a").Used() != 0 {
		t.Error("nothing was counted")
	}
}

func TestMemoryIsCountedByMany(t *testing.T) {
	t.Parallel()
	m := NewMemory(1 << 40)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "a", "b"} {
		wg.Go(func() {
			for range 1000 {
				m.Account(name).Add(3)
				m.Account(name).Add(-1)
			}
		})
	}
	wg.Wait()
	if a, b := m.Account("a").Used(), m.Account("b").Used(); a != 4000 || b != 4000 || m.total.Load() != 8000 {
		t.Errorf("%d and %d are counted, %d in all", a, b, m.total.Load())
	}
}
