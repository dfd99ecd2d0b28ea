package findings

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
)

// conflicts returns the conflicts in the table, without the times.
func (w *world) conflicts() []Conflict {
	var all []Conflict
	for c := range w.found.Conflicts().All(w.db.ReadTxn()) {
		plain := *c
		plain.Since = time.Time{}
		all = append(all, plain)
	}
	return all
}

// TestEachConflictComesAndGoes: a conflict appears after all its facts, and is resolved when they are withdrawn.
func TestEachConflictComesAndGoes(t *testing.T) {
	t.Parallel()
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, f := range s.facts {
				f.set(w, true)
			}
			w.look()
			var got []string
			for _, c := range w.conflicts() {
				got = append(got, c.Key()+" "+strings.Join(c.Clusters, ","))
				if s.code == codes.NodeIPConflict && c.Code == codes.ForeignNetworkClaimed {
					continue // the same conflict, with another code
				}
				if c.Code != s.code || !strings.Contains(c.Message, s.text) || !strings.Contains(c.Rule, s.rule) || (s.rule == "") != (c.Rule == "") {
					t.Errorf("%s: %s (%s)\nwant %s: %s (%s)", c.Code, c.Message, c.Rule, s.code, s.text, s.rule)
				}
			}
			if !slices.Equal(got, s.want) {
				t.Errorf("conflicts %q, want %q", got, s.want)
			}
			w.look()
			for _, f := range s.facts {
				f.set(w, false)
			}
			w.look()
			w.look()
			w.expectConflicts("nobody says anything")
			counts := map[string]int{}
			for e := range w.found.Events().All(w.db.ReadTxn()) {
				if e.Code == s.code {
					counts[e.Kind]++
				}
			}
			if want := map[string]int{"conflict": 1, resolved: 1}; !cmp.Equal(counts, want) {
				t.Errorf("events %v, want %v", counts, want)
			}
			if n := strings.Count(w.log.String(), "code="+string(s.code)); n != 2 {
				t.Errorf("%d lines of the log, want 2:\n%s", n, w.log.String())
			}
		})
	}
}

// TestTheOrderMakesNoDifference: after random changes in random order, the conflicts depend only on the current facts,
// with the same winners and the same messages.
func TestTheOrderMakesNoDifference(t *testing.T) {
	t.Parallel()
	var facts []fact
	for _, s := range situations() {
		facts = append(facts, s.facts...)
	}
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	rounds, found := 1000, 0
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		// Of the facts with one name, the last one set counts.
		final := make(map[string]int)
		for range 60 {
			at := random.IntN(len(facts))
			name := facts[at].String()
			if old, was := final[name]; was {
				facts[old].set(w, false)
				delete(final, name)
			}
			if random.IntN(3) > 0 {
				facts[at].set(w, true)
				final[name] = at
			}
			if random.IntN(8) == 0 {
				w.look()
			}
		}
		w.look()
		fresh := newWorld(t)
		for _, at := range slices.Sorted(maps.Values(final)) { // in the order of the list
			facts[at].set(fresh, true)
		}
		fresh.look()
		want := fresh.conflicts()
		if d := cmp.Diff(want, w.conflicts()); d != "" {
			t.Fatalf("round %d, of %v:\n%s", round, final, d)
		}
		found += len(want)
		for _, at := range final {
			facts[at].set(w, false)
		}
		w.look()
		if left := w.conflicts(); len(left) > 0 {
			t.Fatalf("round %d: left over: %v", round, left)
		}
	}
	if found < rounds {
		t.Errorf("only %d conflicts: the test shows little", found)
	}
	if n := len(w.watch.duplicates.hashes) + len(w.watch.duplicates.several) + len(w.watch.duplicates.cluster) + len(w.watch.duplicates.subject) + len(w.watch.networks.stakes) + len(w.watch.affinities.said) + len(w.watch.affinities.tally) + len(w.watch.affinities.touched) + len(w.watch.backends.of) + w.watch.networks.pods.Size() + w.watch.networks.machines.Size(); n > 0 {
		t.Errorf("%d things are remembered of what is gone", n)
	}
}

func TestEveryConflictIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range situations() {
		for _, f := range s.facts {
			f.set(w, true)
		}
	}
	w.look()
	var reached []codes.Code
	for _, c := range w.conflicts() {
		reached = append(reached, c.Code)
	}
	alternating := nameConflict("c2", []answer{{etcd: "a", id: 2}, {etcd: "b", id: 3}, {etcd: "a", id: 2}})
	full := newConflictSet()
	full.hide("ip/10.0.0.1/32", &Conflict{Kind: KindIP, Clusters: []string{"c2"}})
	codestest.Reached(t, codes.Conflicts, append(reached, alternating.Code, unlisted(full)[0].Code)...)

	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(w.found))
	const want = `
# HELP mesh_agent_conflicts Current conflicts between clusters.
# TYPE mesh_agent_conflicts gauge
mesh_agent_conflicts{kind="claim"} 6
mesh_agent_conflicts{kind="cluster-id"} 1
mesh_agent_conflicts{kind="cluster-name"} 0
mesh_agent_conflicts{kind="identity"} 2
mesh_agent_conflicts{kind="ip"} 1
mesh_agent_conflicts{kind="node-ip"} 1
mesh_agent_conflicts{kind="pod-cidr"} 2
mesh_agent_conflicts{kind="service-affinity"} 2
mesh_agent_conflicts{kind="service-port"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestOnlyTheNumberChanges: the number of networks within a pod network may change all the time; the message shows it,
// but no event is reported.
func TestOnlyTheNumberChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node(2, "n", "10.0.0.0/8").set(w, true)
	for i := range 20 {
		node(3, fmt.Sprint("n", i), fmt.Sprintf("10.1.%d.0/24", i)).set(w, true)
		w.look()
	}
	if c := w.conflicts(); len(c) != 1 || !strings.Contains(c[0].Message, "contains 20 pod networks of c3") {
		t.Errorf("conflicts %v", c)
	}
	w.expectEvents("one", "c3,c2 conflict: the pod network 10.0.0.0/8 of c2 contains 10.1.0.0/24 of c3")
}

// TestAServiceThatIsNotGlobalHasItsOwnPorts: services of other clusters with the same name cause no conflict with it.
func TestAServiceThatIsNotGlobalHasItsOwnPorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := service(1, "web", "http/TCP").(aService)
	own.Shared = false
	own.set(w, true)
	service(2, "web", "grpc/TCP").set(w, true)
	w.look()
	w.expectConflicts("not global")
	global := *own.Service
	global.IncludeExternal = true
	aService{&global}.set(w, true)
	w.look()
	w.expectConflicts("it uses the others' backends", "service-port/ns/web c1,c2 since 2s")
}

// TestWhoCountsOfExportsFollowsTheirAge: the oldest export counts, also when an older one is added later or the oldest
// one is created again.
func TestWhoCountsOfExportsFollowsTheirAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	export("c3", "web", 200, 60).set(w, true)
	export("c2", "web", 300, 0).set(w, true)
	w.look()
	w.expectConflicts("two", "service-affinity/ns/web c3,c2 since 1s")
	export("c4", "web", 100, 0).set(w, true)
	w.look()
	w.expectConflicts("an older one", "service-affinity/ns/web c4,c3,c2 since 1s")
	export("c4", "web", 400, 0).set(w, true)
	w.look()
	w.expectConflicts("made again", "service-affinity/ns/web c3,c2,c4 since 1s")
	export("c3", "web", 200, 0).set(w, true)
	w.look()
	w.expectConflicts("all agree")
}

// TestALabelSetMovesToAnotherNumber: a number gets other labels, and the look sees only the result.
func TestALabelSetMovesToAnotherNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number(2, 1, "k8s:a=x;").set(w, true)
	number(2, 2, "k8s:a=x;").set(w, true)
	w.look()
	w.expectConflicts("twice", "identity/c2/131073 c2 since 1s")
	number(2, 3, "k8s:a=x;").set(w, true)
	w.look()
	w.expectConflicts("thrice", "identity/c2/131073 c2 since 1s")
	number(2, 1, "k8s:a=y;").set(w, true)
	w.look()
	w.expectConflicts("the first one has others", "identity/c2/131074 c2 since 3s")
	number(2, 2, "k8s:a=y;").set(w, true)
	w.look()
	w.expectConflicts("and the second", "identity/c2/131073 c2 since 4s")
	number(2, 2, "k8s:a=y;").set(w, false)
	w.look()
	w.expectConflicts("each its own")
}
