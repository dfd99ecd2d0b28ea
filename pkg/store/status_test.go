package store

import (
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("a", "1")
	r.put("b", "bad")
	begin := time.Now()
	r.start(r.mem)
	defer func() { _ = r.stop() }() // the error is that of its context
	r.until(map[string]string{"a": "1"})
	r.put("c", "3")
	r.put("a", "bad")
	r.put("d", "4")
	r.until(map[string]string{"a": "1", "c": "3", "d": "4"})
	head, err := r.mem.Head(t.Context())
	if err == nil {
		err = r.w.Reach(t.Context(), head) // the change is visible before its revision is recorded
	}
	must(t, err)
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
