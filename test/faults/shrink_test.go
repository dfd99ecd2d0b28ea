package faults

import (
	"slices"
	"testing"
)

// shrink looks for the smallest part of a failing plan that fails as well, by
// leaving out ever smaller pieces.
func shrink(p plan, fails func(plan) bool) plan {
	for size := (len(p) + 1) / 2; size > 0; {
		left := false
		for at := 0; at < len(p); {
			without := slices.Delete(slices.Clone(p), at, min(at+size, len(p)))
			if fails(without) {
				p, left = without, true
			} else {
				at += size
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !left:
			return p
		}
	}
	return p
}

func TestShrink(t *testing.T) {
	t.Parallel()
	p := newPlan(3, 300, 20)
	needed := []step{p[10], p[11], p[200], p[len(p)-1]}
	runs := 0
	got := shrink(p, func(p plan) bool {
		runs++
		for _, s := range needed {
			if !slices.Contains(p, s) {
				return false
			}
		}
		return true
	})
	if !slices.Equal(got, needed) {
		t.Errorf("%d steps are left, want those four that it takes:\n%s", len(got), got)
	}
	if runs > 200 {
		t.Errorf("%d runs for %d steps", runs, len(p))
	}
}
