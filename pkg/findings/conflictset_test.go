package findings

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// many lists kinds of conflicts that a cluster can cause without limit. For each, make returns the facts that cause the
// conflict with a number; without the first fact the conflict is resolved.
var many = []struct {
	kind Kind
	make func(i int) []fact
}{
	{KindIP, func(i int) []fact {
		p := fmt.Sprintf("10.50.%d.%d/32", i>>8, i&255)
		return []fact{aClaim{claim(p, 3)}, aClaim{claim(p, 2)}}
	}},
	{KindNodeIP, func(i int) []fact {
		ip := fmt.Sprintf("192.168.%d.%d", i>>8, i&255)
		return []fact{node(3, fmt.Sprint("n", i), ip), node(2, fmt.Sprint("n", i), ip)}
	}},
	{KindPodCIDR, func(i int) []fact {
		p := fmt.Sprintf("10.%d.%d.0/24", 60+i>>8, i&255)
		return []fact{node(3, fmt.Sprint("p", i), p), node(2, fmt.Sprint("p", i), p)}
	}},
	{KindIdentity, func(i int) []fact {
		labels := fmt.Sprintf("k8s:app=a%d;", i)
		return []fact{number(2, uint32(2*i+1), labels), number(2, uint32(2*i), labels)}
	}},
	{KindServicePort, func(i int) []fact {
		name := fmt.Sprint("s", i)
		return []fact{service(3, name, "http/UDP"), service(2, name, "http/TCP")}
	}},
	{KindServiceAffinity, func(i int) []fact {
		name := fmt.Sprint("x", i)
		return []fact{export("c3", name, 200, 0), export("c2", name, 100, 60)}
	}},
}

// listedOf returns the number of listed conflicts of a kind, and how many more there are.
func (w *world) listedOf(k Kind) (listed, more int) {
	for _, c := range w.conflicts() {
		switch {
		case c.Kind == k && c.More > 0:
			more = c.More
		case c.Kind == k:
			listed++
		}
	}
	return listed, more
}

// TestWhatIsListedOfAClusterIsBounded: when a cluster has too many conflicts, some are listed and the others counted.
// The counted ones take the place of those that are resolved. The conflicts between other clusters are still listed.
func TestWhatIsListedOfAClusterIsBounded(t *testing.T) {
	t.Parallel()
	const all = 3*Listed - 10
	for _, of := range many {
		t.Run(string(of.kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			say := func(from, to int, yes bool) {
				for i := from; i < to; i++ {
					facts := of.make(i)
					if !yes {
						facts = facts[:1]
					}
					for _, f := range facts {
						f.set(w, yes)
					}
				}
			}
			expect := func(what string, listed, more int) {
				t.Helper()
				w.look()
				w.look() // a review may continue at the next look
				if l, m := w.listedOf(of.kind); l != listed || m != more {
					t.Errorf("%s: %d conflicts are listed, and there are %d more; want %d and %d", what, l, m, listed, more)
				}
				if n := w.counted(of.kind); n != listed+more {
					t.Errorf("%s: %d are counted, want %d", what, n, listed+more)
				}
			}
			say(0, all, true)
			expect("many", Listed, all-Listed)
			if more := w.conflict(string(of.kind) + "/more"); !strings.HasPrefix(more.Message, fmt.Sprintf("%d more conflicts of kind %s, of c2", all-Listed, of.kind)) {
				t.Errorf("the item says %q", more.Message)
			}
			say(0, 2*Listed, false)
			expect("most are resolved", Listed-10, 0)
			say(0, 2*Listed, true)
			expect("again", Listed, all-Listed)
			say(0, all, false)
			expect("none is left", 0, 0)
		})
	}
	w := newWorld(t)
	for i := range 2 * Listed {
		for _, f := range many[0].make(i) {
			f.set(w, true)
		}
	}
	w.look()
	w.claims(claim("10.99.0.1/32", 4), claim("10.99.0.1/32", 3), claim("10.99.0.2/32", 4), claim("10.99.0.2/32", 5))
	w.look()
	for _, key := range []string{"ip/10.99.0.1/32", "ip/10.99.0.2/32"} {
		if w.conflict(key) == nil {
			t.Errorf("%s is not listed, for what others disagree on", key)
		}
	}
}

// counted returns the value of the metric for a kind.
func (w *world) counted(k Kind) int {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(w.found))
	families, err := reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == string(k) {
			return int(m.GetGauge().GetValue())
		}
	}
	return -1
}

// conflict returns a conflict of the table; nil when there is none.
func (w *world) conflict(key string) *Conflict {
	all := w.conflicts()
	i := slices.IndexFunc(all, func(c Conflict) bool { return c.Key() == key })
	if i < 0 {
		return nil
	}
	return &all[i]
}
