package store

import (
	"testing"
	"time"
)

func TestLag(t *testing.T) {
	t.Parallel()
	var l lags
	if got := l.lag(); got != (Lag{}) {
		t.Errorf("of no batch: %+v", got)
	}
	l.note(time.Second, 3)
	if got, want := l.lag(), (Lag{time.Second, time.Second, time.Second, time.Second, 1, 3}); got != want {
		t.Errorf("of one: %+v", got)
	}
	for i := range 10 * maxLags {
		l.note(time.Duration(i), 2)
	}
	first := time.Duration(9 * maxLags) // the oldest that is kept
	sum := maxLags*first + maxLags*(maxLags-1)/2
	if got, want := l.lag(), (Lag{first + maxLags/2, first + maxLags*99/100, first + maxLags - 1, sum, maxLags, 3 + 2*10*maxLags}); got != want {
		t.Errorf("of the latest: %+v, want %+v", got, want)
	}
}
