package endpointslices

import (
	"testing"
	"time"
)

func TestTheFloor(t *testing.T) {
	t.Parallel()
	var f floor
	now := time.Unix(1_000_000, 0)
	allowed := func(slices int, known bool) (n int) {
		for range slices {
			if f.allow(now, slices, known) {
				n++
			}
		}
		return n
	}
	for i, step := range []struct {
		after  time.Duration
		slices int
		known  bool
		want   int
	}{
		{0, 100, false, 50},
		{time.Second, 50, false, 0}, // still within the minute
		{floorPeriod, 50, false, 25},
		{0, 25, true, 25}, // everything is known
		{floorPeriod, 1, false, 1},
		{0, 1, false, 0},
		{floorPeriod, 3, false, 1},
	} {
		now = now.Add(step.after)
		if got := allowed(step.slices, step.known); got != step.want {
			t.Errorf("step %d: %d of %d went, not %d", i, got, step.slices, step.want)
		}
	}
}
