package follow

import (
	"testing"
	"time"
)

func TestArrivals(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	var a arrivals
	if got := a.of(1); !got.IsZero() {
		t.Errorf("nothing has come, and 1 at %v", got)
	}
	a.list(10, at(100))
	for i := int64(1); i <= 3; i++ {
		a.batch(10+10*i, at(100+i)) // revisions 20, 30, 40
	}
	for revision, want := range map[int64]time.Time{
		1: at(100), 10: at(100), 11: at(101), 20: at(101), 21: at(102), 40: at(103), 41: {},
	} {
		if got := a.of(revision); !got.Equal(want) {
			t.Errorf("revision %d: %v, want %v", revision, got, want)
		}
	}
	for i := int64(4); i <= 10*maxArrivals; i++ {
		a.batch(10+10*i, at(100+i))
	}
	if n := len(a.latest); n > maxArrivals {
		t.Errorf("%d are remembered", n)
	}
	if got, earliest := a.of(20), at(101); !got.After(earliest) {
		t.Errorf("what is forgotten came at %v, not before it did", got)
	}
	a.list(9000, at(900))
	if got := a.of(20); !got.Equal(at(900)) {
		t.Errorf("after another list: %v", got)
	}
}
