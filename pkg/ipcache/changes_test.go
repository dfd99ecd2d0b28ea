package ipcache

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// follower builds the view from the changes alone.
type follower struct {
	revision  uint64
	winners   map[netip.Prefix]*Entry
	contested map[netip.Prefix]bool
}

// follow reads the new changes, in small pages, and compares.
func (f *follower) follow(t *rapid.T, c *Cache) {
	page := make([]Change, 0, 3)
	for {
		changes, held := c.Since(f.revision, page)
		if !held {
			t.Fatalf("changes behind %d are not held", f.revision)
		}
		if len(changes) == 0 {
			break
		}
		for _, ch := range changes {
			f.revision++
			f.take(t, c, ch)
		}
	}
	s := c.fresh()
	winners := map[netip.Prefix]*Entry{}
	for e := range s.From(netip.Prefix{}) {
		winners[e.Prefix()] = e
	}
	if f.revision != s.Revision() || !maps.Equal(f.winners, winners) {
		t.Fatalf("at revision %d the changes make\n%v, and at %d the cache has\n%v", f.revision, f.winners, s.Revision(), winners)
	}
	for _, p := range slices.Collect(s.Contested()) {
		if !f.contested[p] {
			t.Fatalf("no change said that %s is contested", p)
		}
	}
}

func (f *follower) take(t *rapid.T, c *Cache, ch Change) {
	p := ch.Prefix()
	if f.winners[p] != ch.Before {
		t.Fatalf("%s: was %v before, the change says %v", p, f.winners[p], ch.Before)
	}
	if f.winners[p] = ch.After; ch.After == nil {
		delete(f.winners, p)
	}
	if ch.Conflict {
		_, f.contested[p] = c.Contest(p)
	}
}

func TestChangesAreHeldForAWhile(t *testing.T) {
	t.Parallel()
	c := New(Rules{})
	own := &Claimant{"a", 1}
	var ops []Op
	for i := range ringSize + 10 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		ops = append(ops, Op{New: NewEntry(Spec{Prefix: netip.PrefixFrom(a, 32), Cluster: own})})
	}
	waiting := c.Changed(0)
	select {
	case <-waiting:
		t.Fatal("nothing has changed")
	default:
	}
	c.Apply(ops)
	<-waiting
	<-c.Changed(c.Revision() - 1)
	for _, test := range []struct {
		after uint64
		held  bool
		first string
	}{
		{0, false, ""},
		{9, false, ""},
		{10, true, "10.0.0.10/32"},
		{ringSize, true, "10.0.128.0/32"},
		{ringSize + 10, true, ""},
		{ringSize + 11, false, ""}, // a revision of another process
	} {
		changes, held := c.Since(test.after, make([]Change, 0, 1))
		first := ""
		if len(changes) > 0 {
			first = fmt.Sprint(changes[0].Prefix())
		}
		if held != test.held || first != test.first {
			t.Errorf("after %d: held %t, first %q; want %t, %q", test.after, held, first, test.held, test.first)
		}
	}
}
