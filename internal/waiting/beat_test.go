package waiting

import (
	"testing"
	"time"
)

// Whoever waits about ten seconds, from whatever moment, is woken up on a beat, and
// at most half a beat earlier or later than wished.
func TestBeat(t *testing.T) {
	t.Parallel()
	for i := range time.Duration(1000) {
		now, wish := i*i*7*time.Millisecond, 9*time.Second+i*2*time.Millisecond // any moment between two beats
		d := nearest(now, wish, time.Second)
		if at := now + d; at%time.Second != 0 {
			t.Fatalf("%s after the beginning is no beat", at)
		}
		if off := (d - wish).Abs(); off > time.Second/2 {
			t.Fatalf("waits %s instead of %s", d, wish)
		}
	}
}

func TestBeatIsNeverNow(t *testing.T) {
	t.Parallel()
	for i := range time.Duration(100) {
		if d := nearest(i*37*time.Millisecond, time.Millisecond, time.Second); d < time.Second/2 {
			t.Fatalf("waits %s", d)
		}
	}
}

// TestBeatsBeginWithTheBeat: what is said of moments holds for those of the clock.
func TestBeatsBeginWithTheBeat(t *testing.T) {
	t.Parallel()
	b := NewBeat(time.Hour)
	if at := time.Now().Add(b.Nearest(2 * time.Hour)).Sub(b.began); (at - 2*time.Hour).Abs() > time.Minute {
		t.Fatalf("the second beat is %s after the first", at)
	}
}

func TestWithoutABeat(t *testing.T) {
	t.Parallel()
	if d := (*Beat)(nil).Nearest(42 * time.Millisecond); d != 42*time.Millisecond {
		t.Fatalf("waits %s", d)
	}
}
