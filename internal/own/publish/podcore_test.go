package publish

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// podModel drives a core, and knows what must be true of it.
type podModel struct {
	core      *podCore
	wants     map[string]*wantedPod
	under     map[string]podJob         // the jobs of pods that are running
	uses      map[string]map[string]int // references, by pod and text
	published map[string]string         // the published values
}

// apply takes what the core tells to publish.
func (m *podModel) apply(t *rapid.T, changes []entry) {
	for _, e := range changes {
		was, there := m.published[e.address]
		switch {
		case e.value == nil && !there:
			t.Fatalf("%s is withdrawn and was never there", e.address)
		case e.value == nil:
			delete(m.published, e.address)
		case there && was == string(e.value):
			t.Fatalf("%s is published again as it was", e.address)
		default:
			m.published[e.address] = string(e.value)
		}
	}
}

// id is the identity of labels.
func id(text string) uint32 { return 70000 + uint32(text[0]) }

func (m *podModel) want(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod")
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		m.wants[name] = nil
		m.apply(t, m.core.want(name, nil))
		return
	}
	w := &wantedPod{
		uid:     types.UID(fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "uid"))),
		created: time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0),
		text:    rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "labels"),
	}
	if rapid.IntRange(0, 3).Draw(t, "endpoint") == 0 {
		w.identity, w.text = 99, ""
	}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, 3), 1, 2, rapid.ID[int]).Draw(t, "addresses") {
		p := wire.NewHostPair(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
		p.Pod = name
		w.pairs = append(w.pairs, p)
	}
	m.wants[name] = w
	m.apply(t, m.core.want(name, w))
}

// begin starts the pending job of a pod.
func (m *podModel) begin(t *rapid.T, name string) {
	if _, busy := m.under[name]; busy {
		return
	}
	due := m.core.due(name)
	job, ok := m.core.next(name)
	if ok != due {
		t.Fatalf("due %t, but there is something to do: %t", due, ok)
	}
	if !ok {
		return
	}
	m.under[name] = job
	if !job.release {
		return
	}
	if m.uses[name][job.text]--; m.uses[name][job.text] < 0 {
		t.Fatalf("%s gives up %q and has none", name, job.text)
	}
	if p := m.core.pods[name]; p != nil && p.held != nil && p.held.text == job.text && m.uses[name][job.text] == 0 {
		t.Fatalf("%s gives up %q while it uses it", name, job.text)
	}
}

// end ends the running job of a pod, with or without success. A release cannot fail.
func (m *podModel) end(t *rapid.T, name string, well bool) {
	job, busy := m.under[name]
	if !busy {
		return
	}
	delete(m.under, name)
	if job.release || !well {
		return
	}
	if m.uses[name] == nil {
		m.uses[name] = make(map[string]int)
	}
	m.uses[name][job.text]++
	m.apply(t, m.core.allocated(name, job.reference, id(job.text)))
}

// Each of the pods with an address that has an identity claims it, and the first one has it.
func (m *podModel) check(t *rapid.T) {
	if !maps.Equal(m.published, m.core.published) {
		t.Fatalf("got %v, published %v", m.published, m.core.published)
	}
	want := make(map[string]string)
	first := make(map[string]*wantedPod)
	for _, name := range []string{"a", "b", "c"} {
		w, p := m.wants[name], m.core.pods[name]
		if w == nil || p == nil || p.identity == 0 {
			continue
		}
		for _, pair := range w.pairs {
			if by := first[pair.Name()]; by == nil || w.created.Before(by.created) {
				pair.Identity = p.identity
				first[pair.Name()], want[pair.Name()] = w, string(pair.Encode())
			}
		}
	}
	if !maps.Equal(want, m.published) {
		t.Fatalf("published %v, want %v", m.published, want)
	}
	for name, uses := range m.uses {
		for text, n := range uses {
			if n > 0 && m.core.pods[name] == nil {
				t.Fatalf("%s is forgotten and has a reference of %q", name, text)
			}
		}
	}
}

// atRest is when all that is due was done: then each pod has the identity that it
// needs, and no reference but that.
func (m *podModel) atRest(t *rapid.T) {
	for _, name := range []string{"a", "b", "c"} {
		for n := 0; m.core.due(name) || len(m.under[name].text) > 0; n++ {
			if n > 1000 {
				t.Fatalf("there is no end to what is due for %s", name)
			}
			m.begin(t, name)
			m.end(t, name, true)
		}
		w, p := m.wants[name], m.core.pods[name]
		want := make(map[string]int)
		switch {
		case w == nil && p != nil:
			t.Fatalf("%s is gone and not forgotten", name)
		case w != nil && w.identity != 0 && p.identity != w.identity, w != nil && w.identity == 0 && p.identity != id(w.text):
			t.Fatalf("%s has the identity %d and wants %+v", name, p.identity, w)
		case w != nil && w.identity == 0:
			want[w.text] = 1
		}
		maps.DeleteFunc(m.uses[name], func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(m.uses[name], want) {
			t.Fatalf("%s has the references %v, want %v", name, m.uses[name], want)
		}
	}
	m.check(t)
}

func TestPodsAndTheirIdentities(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &podModel{
			core: newPodCore(), wants: make(map[string]*wantedPod), under: make(map[string]podJob),
			uses: make(map[string]map[string]int), published: make(map[string]string),
		}
		pod := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"want":   m.want,
			"begin":  func(t *rapid.T) { m.begin(t, pod.Draw(t, "pod")) },
			"end":    func(t *rapid.T) { m.end(t, pod.Draw(t, "pod"), rapid.Bool().Draw(t, "well")) },
			"atRest": m.atRest,
			"":       m.check,
		})
		m.atRest(t)
	})
}

// The changes that follow, in order, when a pod changes its labels.
func TestTheOldIdentityStaysUntilThereIsTheNewOne(t *testing.T) {
	t.Parallel()
	c := newPodCore()
	var steps []string
	pair := wire.NewHostPair(netip.MustParseAddr("10.0.0.1"))
	tell := func(changes []entry) {
		for _, e := range changes {
			_, rest, _ := strings.Cut(string(e.value), `"ID":`)
			identity, _, _ := strings.Cut(rest, ",")
			steps = append(steps, e.address+"="+identity)
		}
	}
	do := func() {
		for job, due := c.next("p"); due; job, due = c.next("p") {
			if job.release {
				steps = append(steps, "release "+job.text)
				continue
			}
			steps = append(steps, "allocate "+job.text)
			tell(c.allocated("p", job.reference, id(job.text)))
		}
	}
	for _, w := range []*wantedPod{
		{text: "x", pairs: []wire.IPIdentityPair{pair}},
		{text: "y", pairs: []wire.IPIdentityPair{pair}},
		{identity: 5, pairs: []wire.IPIdentityPair{pair}},
		{text: "z", pairs: []wire.IPIdentityPair{pair}},
		{text: "w", uid: "another", pairs: []wire.IPIdentityPair{pair}},
		nil,
	} {
		tell(c.want("p", w))
		do()
	}
	want := []string{
		"allocate x", "10.0.0.1=70120",
		"allocate y", "10.0.0.1=70121", "release x",
		"10.0.0.1=5", "release y",
		"allocate z", "10.0.0.1=70122",
		"10.0.0.1=", "release z", "allocate w", "10.0.0.1=70119",
		"10.0.0.1=", "release w",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("got %q\nwant %q", steps, want)
	}
}

// TestLabelsGetAnotherNumber: the pods that have the earlier one are published with the other one, as is a pod that
// gets the earlier one after that. Changes back and forth end.
func TestLabelsGetAnotherNumber(t *testing.T) {
	t.Parallel()
	c := newPodCore()
	want := func(name, address string) {
		pair := wire.NewHostPair(netip.MustParseAddr(address))
		c.want(name, &wantedPod{uid: types.UID(name), text: "x", pairs: []wire.IPIdentityPair{pair}})
	}
	want("a", "10.0.0.1")
	want("b", "10.0.0.2")
	x := reference{text: "x"}
	c.allocated("a", x, 100)
	if changes := c.renumber("x", 100, 101); len(changes) != 1 || !strings.Contains(string(changes[0].value), `"ID":101,`) {
		t.Errorf("%s", changes)
	}
	if changes := c.allocated("b", x, 100); len(changes) != 1 || !strings.Contains(string(changes[0].value), `"ID":101,`) {
		t.Errorf("%s", changes)
	}
	if changes := c.renumber("y", 101, 102); len(changes) != 0 {
		t.Errorf("other labels: %s", changes)
	}
	if changes := c.renumber("x", 101, 100); len(changes) != 2 || c.number("x", 101) != 100 || c.number("x", 100) != 100 {
		t.Errorf("back: %s", changes)
	}
}
