package waiting

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whoever waits about ten seconds, from whatever moment, is woken up on a beat,
// and at most half a beat earlier or later than wished.
func TestBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBeat(time.Second)
		began := time.Now()
		for i := range 1000 {
			time.Sleep(time.Duration(i) * 7 * time.Millisecond) // to any moment between two beats
			wish := 9*time.Second + time.Duration(i)*2*time.Millisecond
			d := b.Nearest(wish)
			if at := time.Since(began) + d; at%time.Second != 0 {
				t.Fatalf("%s after the beginning is no beat", at)
			}
			if off := (d - wish).Abs(); off > time.Second/2 {
				t.Fatalf("waits %s instead of %s", d, wish)
			}
		}
	})
}

func TestBeatIsNeverNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBeat(time.Second)
		for range 100 {
			time.Sleep(37 * time.Millisecond)
			if d := b.Nearest(time.Millisecond); d < time.Second/2 {
				t.Fatalf("waits %s", d)
			}
		}
	})
}

func TestWithoutABeat(t *testing.T) {
	t.Parallel()
	if d := (*Beat)(nil).Nearest(42 * time.Millisecond); d != 42*time.Millisecond {
		t.Fatalf("waits %s", d)
	}
}
