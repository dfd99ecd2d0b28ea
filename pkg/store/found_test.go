package store

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
		a.batch(10+10*i, at(100+i)) // 20, 30, 40
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

func TestFind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "bad")
	begin := time.Now()
	r.start(r.mem)
	defer func() { _ = r.stop() }() // it was cancelled
	r.until(map[string]string{"a": "1"})
	r.put("c", "3")
	r.put("a", "bad")
	r.put("d", "4")
	r.until(map[string]string{"a": "1", "c": "3", "d": "4"})
	head, err := r.mem.Head(t.Context())
	if err == nil {
		err = r.w.Reach(t.Context(), head) // visible before it is noted that it has come
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Found{
		"a": {InForce: true, Reason: "malformed", Why: "it is bad"},
		"b": {Reason: "malformed", Why: "it is bad"},
		"c": {InForce: true},
	} {
		got, known := r.w.Find(name)
		if !known || got.Key != testPrefix+name || got.Read.Before(begin) || got.Read.After(time.Now()) {
			t.Errorf("%s: %+v", name, got)
		}
		if (got.Reason != "") != (want.Reason != "") || (got.Why != "") != (want.Why != "") || got.InForce != want.InForce {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	a, _ := r.w.Find("a")
	if c, _ := r.w.Find("c"); a.Revision <= c.Revision {
		t.Errorf("the refused value of a is of revision %d, c of %d", a.Revision, c.Revision)
	}
	if got, known := r.w.Find("x"); known {
		t.Errorf("what is not there: %+v", got)
	}
}
