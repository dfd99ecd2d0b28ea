package allocator

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPoolAgainstModel: after random operations, exactly those IDs are available that a naive set has, and the pool
// stores no ID that is in its initial place.
func TestPoolAgainstModel(t *testing.T) {
	t.Parallel()
	type state struct{ available, leased, back bool }
	rapid.Check(t, func(t *rapid.T) {
		const size = 8
		lowest := rapid.SampledFrom([]uint64{1, 7, 1 << 40, math.MaxUint64 - size + 1}).Draw(t, "min")
		p := NewIDPool(lowest, lowest+size-1)
		p.random = func(below uint64) uint64 { return rapid.Uint64Range(0, below-1).Draw(t, "random") }
		model := make(map[uint64]*state)
		for i := range uint64(size) {
			model[lowest+i] = &state{available: true}
		}
		id := rapid.Uint64Range(0, size+1) // includes one ID outside the range on each side
		draw := func(t *rapid.T) (uint64, *state) {
			n := lowest - 1 + id.Draw(t, "id")
			if s := model[n]; s != nil {
				return n, s
			}
			return n, new(state) // outside
		}
		t.Repeat(map[string]func(*rapid.T){
			"lease": func(t *rapid.T) {
				n, ok := p.Lease()
				if !ok {
					for n, s := range model {
						if s.available {
							t.Fatalf("nothing to lease, though %d is available", n)
						}
					}
					return
				}
				s := model[n]
				if s == nil || !s.available {
					t.Fatalf("leased %d, which is %+v", n, s)
				}
				*s = state{leased: true, back: true}
			},
			"use": func(t *rapid.T) {
				n, s := draw(t)
				p.Use(n)
				s.leased = false
			},
			"release": func(t *rapid.T) {
				n, s := draw(t)
				p.Release(n)
				if s.leased {
					*s = state{available: s.back}
				}
			},
			"insert": func(t *rapid.T) {
				n, s := draw(t)
				p.Insert(n)
				s.back, s.available = s.leased, !s.leased
			},
			"remove": func(t *rapid.T) {
				n, s := draw(t)
				p.Remove(n)
				s.back, s.available = false, false
			},
			"": func(t *rapid.T) {
				var available uint64
				for n, s := range model {
					if p.available(n) != s.available {
						t.Fatalf("%d available: %v, want %v", n, p.available(n), s.available)
					}
					if s.available {
						available++
					}
				}
				if p.free != available || p.available(lowest-1) || p.available(lowest+size) {
					t.Fatalf("%d are available, want %d of the range", p.free, available)
				}
				if uint64(len(p.taken)) != size-available || len(p.row) > len(p.taken) || len(p.row) != len(p.places) {
					t.Fatalf("of %d available IDs %d are stored, and %d others", available, len(p.row), len(p.taken))
				}
				for place, n := range p.row {
					if place == n || place >= available || n < available || p.places[n] != place {
						t.Fatalf("of %d in a row %d stands at %d, its place is %d", available, n, place, p.places[n])
					}
				}
			},
		})
	})
}

// TestPoolOfAllNumbers: the largest range needs no memory before it is used.
func TestPoolOfAllNumbers(t *testing.T) {
	t.Parallel()
	p := NewIDPool(1, math.MaxUint64)
	if p.free != math.MaxUint64 {
		t.Errorf("%d are available", p.free)
	}
	seen := make(map[uint64]bool)
	for range 1000 {
		n, ok := p.Lease()
		if !ok || n == NoID || seen[n] {
			t.Fatalf("leased %d, %v", n, ok)
		}
		seen[n] = true
	}
	if len(p.row) > 1000 {
		t.Errorf("1000 leases displace %d IDs", len(p.row))
	}
	p.Remove(math.MaxUint64)
	if p.available(math.MaxUint64) {
		t.Error("the last ID was removed and is available")
	}
}

// TestPoolIsRandom: two pools return IDs in different orders, and neither in ascending order.
func TestPoolIsRandom(t *testing.T) {
	t.Parallel()
	first := func() (ids [4]uint64) {
		p := NewIDPool(1, 1<<24)
		for i := range ids {
			ids[i], _ = p.Lease()
		}
		return ids
	}
	a, b := first(), first()
	if a == b || a == [4]uint64{1, 2, 3, 4} {
		t.Errorf("the first IDs of two pools are %v and %v", a, b)
	}
}
