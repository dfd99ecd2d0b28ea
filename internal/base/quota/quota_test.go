package quota

import (
	"errors"
	"testing"
)

func TestQuota(t *testing.T) {
	t.Parallel()
	q := New[string](10, 6)
	for _, c := range []struct {
		owner string
		n     int64
		own   bool // the error is about the owner's share
		fails bool
	}{
		{owner: "a", n: 6},
		{owner: "a", n: 1, fails: true, own: true},
		{owner: "b", n: 5, fails: true},
		{owner: "b", n: 4},
		{owner: "c", n: 1, fails: true},
		{owner: "a", n: -2},
		{owner: "c", n: 2},
	} {
		err := q.Reserve(c.owner, c.n)
		exceeded, is := errors.AsType[*Exceeded](err)
		if is != c.fails || is && exceeded.Own != c.own {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if q.Held("a") != 4 || q.Sum() != 10 {
		t.Errorf("%d of %d", q.Held("a"), q.Sum())
	}
	if err := q.ReserveBeyond("a", 1); err == nil {
		t.Error("more than all together was taken")
	}
	q.Release("b", 4)
	if err := q.ReserveBeyond("a", 4); err != nil || q.Held("a") != 8 {
		t.Errorf("%d are held: %v", q.Held("a"), err)
	}
	q.Release("a", 8)
	q.Release("c", 2)
	if len(q.held) != 0 || q.Sum() != 0 {
		t.Errorf("kept: %v", q.held)
	}
}
