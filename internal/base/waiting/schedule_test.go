package waiting

import (
	"testing"
	"time"
)

// TestNearest: a goroutine that waits about ten seconds, from any moment, is woken up on the schedule, and at most
// half an interval earlier or later than wished.
func TestNearest(t *testing.T) {
	t.Parallel()
	for i := range time.Duration(1000) {
		now, wish := i*i*7*time.Millisecond, 9*time.Second+i*2*time.Millisecond // any moment of an interval
		d := nearest(now, wish, time.Second)
		if at := now + d; at%time.Second != 0 {
			t.Fatalf("%s after the beginning is not on the schedule", at)
		}
		if off := (d - wish).Abs(); off > time.Second/2 {
			t.Fatalf("waits %s instead of %s", d, wish)
		}
		if d := nearest(i*37*time.Millisecond, time.Millisecond, time.Second); d < time.Second/2 {
			t.Fatalf("waits %s", d)
		}
	}
}

// TestSchedule: the rules for moments hold for those of the clock, and a nil schedule does not change the wait.
func TestSchedule(t *testing.T) {
	t.Parallel()
	s := NewSchedule(time.Hour)
	if at := time.Now().Add(s.Nearest(2 * time.Hour)).Sub(s.began); (at - 2*time.Hour).Abs() > time.Minute {
		t.Fatalf("waits until %s after the begin", at)
	}
	if d := (*Schedule)(nil).Nearest(42 * time.Millisecond); d != 42*time.Millisecond {
		t.Fatalf("waits %s", d)
	}
}
