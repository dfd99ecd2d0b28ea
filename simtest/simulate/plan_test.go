package simulate

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestPlans: a seed makes the same plan each time, and the text of a plan is the same plan.
func TestPlans(t *testing.T) {
	t.Parallel()
	size, err := ParseSize("3x10x20x100/5s")
	waittest.Must(t, err)
	size.Length = 4 * time.Hour
	plan := NewPlan(7, size)
	if again := NewPlan(7, size); !slices.Equal(plan, again) {
		t.Error("the same seed makes another plan")
	}
	read, err := ParsePlan("# of seed 7\n\n" + plan.String())
	waittest.Must(t, err)
	if !slices.Equal(plan, read) {
		t.Errorf("another plan is read: %s\nwritten: %s", read[:10], plan[:10])
	}
	occurs := map[string]bool{}
	for seed := range uint64(20) {
		for _, s := range NewPlan(seed, size) {
			occurs[s.Do] = true
		}
	}
	for _, f := range faults() {
		if !occurs[f.name] || f.end != nil && !occurs[ending+f.name] {
			t.Errorf("no plan has %s and its end", f.name)
		}
	}
	for text, want := range map[string]string{
		"0:00:01.000 c0 pod 1":      "line 1",
		"\n0:00:01.000 c1 rain 1":   "line 2",
		"0:00:01 pod 1":             "want for example",
		"0:00:01.000 c1 no-pod 1":   "no such cluster or step",
		"0:00:01.000 c1 pod number": "want for example",
	} {
		if _, err := ParsePlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBetween: a value counts from its time until the next one, and both count at the time of a change.
func TestBetween(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	of := recorded{keys: map[string][]version{"k": {{from: at(10), value: []byte("a")}, {from: at(20)}, {from: at(30), value: []byte("b")}}}}
	for _, c := range []struct {
		from, to int64
		want     string
	}{{5, 5, "-"}, {5, 10, "- a"}, {10, 10, "- a"}, {11, 19, "a"}, {20, 20, "a -"}, {21, 25, "-"}, {11, 31, "a - b"}, {31, 40, "b"}} {
		var got []string
		for v := range of.between("k", at(c.from), at(c.to)) {
			got = append(got, cmp.Or(string(v.value), "-"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("from %d to %d: %s, want %s", c.from, c.to, text, c.want)
		}
	}
}
