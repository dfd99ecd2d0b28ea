package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// identities hands out identities, as an allocator does.
type identities struct {
	mu     sync.Mutex
	ids    map[string]uint32
	uses   map[string]int
	refuse func(text string) bool       // nil: none
	hold   map[string]chan struct{}     // allocations of these texts wait
	target *target                      // its values are recorded when an identity is released
	seen   map[string]map[string]string // these values, by text
	asked  chan string                  // each requested text, unless no test receives it
	more   chan struct{}                // one after each change, unless one is waiting
}

func newIdentities(to *target) *identities {
	return &identities{
		ids: make(map[string]uint32), uses: make(map[string]int), hold: make(map[string]chan struct{}),
		target: to, seen: make(map[string]map[string]string), asked: make(chan string, 1000), more: make(chan struct{}, 1),
	}
}

// app is the label with which the tests distinguish identities.
func app(labels wire.Labels) string {
	l, _ := labels.Get("app")
	return l.Value
}

func (i *identities) allocate(ctx context.Context, labels wire.Labels) (uint32, error) {
	name := app(labels)
	i.asked <- name
	i.mu.Lock()
	wait, refused := i.hold[name], i.refuse != nil && i.refuse(name)
	i.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if refused {
		return 0, errors.New("no identity today")
	}
	defer i.changed()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ids[name] == 0 {
		i.ids[name] = 131072 + uint32(len(i.ids))
	}
	i.uses[name]++
	return i.ids[name], nil
}

func (i *identities) release(_ context.Context, labels wire.Labels) error {
	defer i.changed()
	published := i.target.get()
	i.mu.Lock()
	defer i.mu.Unlock()
	name := app(labels)
	i.seen[name] = published
	if i.uses[name]--; i.uses[name] < 0 {
		return errors.New("it is not in use")
	}
	if i.uses[name] == 0 {
		delete(i.uses, name)
	}
	return nil
}

func (i *identities) changed() {
	select {
	case i.more <- struct{}{}:
	default:
	}
}

func (i *identities) untilUses(t *testing.T, want map[string]int) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		i.mu.Lock()
		ok, have := cmp.Equal(i.uses, want), fmt.Sprint(i.uses)
		i.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-i.more:
		case <-deadline.C:
			t.Fatalf("waited in vain for the references %v; there are %s", want, have)
		}
	}
}

// node is a world with the pods of one node.
type node struct {
	*world
	to   *target
	ids  *identities
	pods *Pods
}

func newNode1(t *testing.T) *node {
	t.Helper()
	n := &node{world: newWorld(t), to: newTarget()}
	n.ids = newIdentities(n.to)
	n.pods = NewPods(n.cluster, cluster2(), PodsParams{
		Node: "node1", DefaultGlobalNamespace: true, Allocate: n.ids.allocate, Release: n.ids.release, To: n.to, Log: discard(),
	})
	n.pods.retryMin, n.pods.retryMax = time.Millisecond, 10*time.Millisecond
	n.start(n.pods.Run)
	return n
}

// pod is a manifest of a pod.
func pod(name, app, address string, more ...string) string {
	return fmt.Sprintf("{metadata: {namespace: prod, name: %s, labels: {app: %s}%s}, spec: {nodeName: node1}, status: {podIP: %s}}",
		name, app, strings.Join(append([]string{""}, more...), ", "), address)
}

// untilPublished waits for addresses with the labels that they have the identity
// of, and the pod: "10.0.0.1 app pod".
func (n *node) untilPublished(t *testing.T, want ...string) {
	t.Helper()
	n.to.until(t, fmt.Sprint(want), func(values map[string]string) bool {
		if len(values) != len(want) {
			return false
		}
		n.ids.mu.Lock()
		defer n.ids.mu.Unlock()
		for _, w := range want {
			f := strings.Fields(w)
			value := values[f[0]]
			if !strings.Contains(value, fmt.Sprintf(`"ID":%d,`, n.ids.ids[f[1]])) || !strings.Contains(value, `"K8sPodName":"`+f[2]+`"`) {
				return false
			}
		}
		return true
	})
}

// expectFailed compares the pods whose last try to get an identity failed.
func (n *node) expectFailed(t *testing.T, want ...string) {
	t.Helper()
	n.pods.mu.Lock()
	defer n.pods.mu.Unlock()
	if got := slices.Sorted(maps.Keys(n.pods.failed)); !slices.Equal(got, want) {
		t.Errorf("without an identity are %q, want %q", got, want)
	}
}

func TestPodsComeChangeAndGo(t *testing.T) {
	t.Parallel()
	n := newNode1(t)
	set(t, n.cluster.Pods, pod("a", "x", "10.0.0.1"))
	set(t, n.cluster.Pods, pod("b", "x", "10.0.0.2"))
	set(t, n.cluster.Pods, strings.ReplaceAll(pod("c", "w", "10.0.0.3"), "node1", "node2"))
	n.listed()
	n.untilPublished(t, "10.0.0.1 x a", "10.0.0.2 x b")
	n.to.until(t, "completeness", func(map[string]string) bool { return n.to.isComplete() })
	if len(n.to.complete) != 2 {
		t.Errorf("complete with %v", n.to.complete)
	}
	n.ids.untilUses(t, map[string]int{"x": 2})

	set(t, n.cluster.Pods, pod("a", "z", "10.0.0.1"))
	n.untilPublished(t, "10.0.0.1 z a", "10.0.0.2 x b")
	n.ids.untilUses(t, map[string]int{"x": 1, "z": 1})
	if value := n.ids.seen["x"]["10.0.0.1"]; !strings.Contains(value, fmt.Sprint(n.ids.ids["z"])) {
		t.Errorf("when the old identity was given up, this was published: %s", value)
	}
	set(t, n.cluster.Pods, pod("b", "x", "10.0.0.4"))
	n.untilPublished(t, "10.0.0.1 z a", "10.0.0.4 x b")

	set(t, n.cluster.Namespaces, "metadata: {name: prod, annotations: {clustermesh.cilium.io/global: 'false'}}")
	n.to.untilNames(t)
	n.ids.untilUses(t, map[string]int{})
	set(t, n.cluster.Namespaces, "metadata: {name: prod}")
	n.untilPublished(t, "10.0.0.1 z a", "10.0.0.4 x b")
	remove(n.world, n.cluster.Pods, "prod/a")
	n.untilPublished(t, "10.0.0.4 x b")
	n.ids.untilUses(t, map[string]int{"x": 1})
	set(t, n.cluster.Pods, strings.ReplaceAll(pod("b", "x", "10.0.0.4"), "podIP", "phase: Succeeded, podIP"))
	n.to.untilNames(t)
	n.ids.untilUses(t, map[string]int{})
}

func TestLabelsOfTheNamespaceAreThoseOfItsPods(t *testing.T) {
	t.Parallel()
	n := newNode1(t)
	n.listed()
	set(t, n.cluster.Pods, pod("a", "x", "10.0.0.1"))
	n.untilPublished(t, "10.0.0.1 x a")
	<-n.ids.asked
	set(t, n.cluster.Namespaces, "metadata: {name: prod, labels: {team: a}}")
	if got := <-n.ids.asked; got != "x" {
		t.Errorf("asked for %s", got)
	}
	n.ids.untilUses(t, map[string]int{"x": 1})
}

func TestOnePodWithoutIdentityHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := newNode1(t)
	stuck := make(chan struct{})
	n.ids.hold["stuck"] = stuck
	var tries int
	n.ids.refuse = func(name string) bool {
		if name == "bad" {
			tries++
		}
		return name == "bad" && tries < 5
	}
	set(t, n.cluster.Pods, pod("a", "stuck", "10.0.0.1"))
	set(t, n.cluster.Pods, pod("b", "bad", "10.0.0.2"))
	set(t, n.cluster.Pods, pod("c", "x", "10.0.0.3"))
	n.listed()
	n.untilPublished(t, "10.0.0.2 bad b", "10.0.0.3 x c")
	if n.to.isComplete() {
		t.Error("complete before every pod had its try")
	}
	close(stuck)
	n.untilPublished(t, "10.0.0.1 stuck a", "10.0.0.2 bad b", "10.0.0.3 x c")
	n.to.until(t, "completeness", func(map[string]string) bool { return n.to.isComplete() })
	n.expectFailed(t)
}

func TestAPodThatGetsNoIdentityIsShownAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNode1(t)
	n.ids.refuse = func(string) bool { return true }
	set(t, n.cluster.Pods, pod("a", "bad", "10.0.0.1"))
	n.listed()
	n.to.until(t, "completeness", func(map[string]string) bool { return n.to.isComplete() })
	n.expectFailed(t, "prod/a")
	for range 5 { // it is tried again
		<-n.ids.asked
	}
	// Cilium gives it one.
	set(t, n.cluster.CiliumEndpoints, "{metadata: {namespace: prod, name: a}, status: {identity: {id: 131999}, networking: {addressing: [{ipv4: 10.0.0.9}]}}}")
	n.to.until(t, "the endpoint", func(v map[string]string) bool { return strings.Contains(v["10.0.0.9"], `"ID":131999,`) })
	n.expectFailed(t)
}

// An identity that is no longer needed is not waited for, and a number that is still allocated for it is released.
func TestLabelsThatChangeWhileAnIdentityIsMade(t *testing.T) {
	t.Parallel()
	n := newNode1(t)
	n.ids.hold["slow"] = make(chan struct{})
	n.listed()
	set(t, n.cluster.Pods, pod("a", "slow", "10.0.0.1"))
	if got := <-n.ids.asked; got != "slow" {
		t.Fatalf("asked for %s", got)
	}
	set(t, n.cluster.Pods, pod("a", "x", "10.0.0.1"))
	n.untilPublished(t, "10.0.0.1 x a")
	n.ids.untilUses(t, map[string]int{"x": 1})
	set(t, n.cluster.Pods, pod("a", "slow", "10.0.0.1"))
	<-n.ids.asked // for x
	<-n.ids.asked
	remove(n.world, n.cluster.Pods, "prod/a")
	n.to.untilNames(t)
	n.ids.untilUses(t, map[string]int{})
}

// Nothing is allocated while there is any object of Cilium, of any kind and of any pod: Cilium may give away the same
// numbers.
func TestWhereCiliumIsPodsWaitForTheirEndpoints(t *testing.T) {
	t.Parallel()
	const endpoint = "{metadata: {namespace: prod, name: %s}, status: {identity: {id: 131999}, networking: {addressing: [{ipv4: 10.0.0.9}]}}}"
	for kind, begin := range map[string]func(n *node) (remove func()){
		"identity": func(n *node) func() {
			set(t, n.cluster.CiliumIdentities, labelled("131500", "prod", "other"))
			return func() { remove(n.world, n.cluster.CiliumIdentities, "131500") }
		},
		"node": func(n *node) func() {
			set(t, n.cluster.CiliumNodes, "metadata: {name: node2}")
			return func() { remove(n.world, n.cluster.CiliumNodes, "node2") }
		},
		"slice": func(n *node) func() {
			set(t, n.cluster.CiliumEndpointSlices, ces("s", "elsewhere 131999 10.0.0.8"))
			return func() { remove(n.world, n.cluster.CiliumEndpointSlices, "s") }
		},
		"endpoint": func(n *node) func() {
			set(t, n.cluster.CiliumEndpoints, fmt.Sprintf(endpoint, "elsewhere"))
			return func() { remove(n.world, n.cluster.CiliumEndpoints, "prod/elsewhere") }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := newNode1(t)
			gone := begin(n)
			set(t, n.cluster.Pods, pod("a", "x", "10.0.0.1"))
			n.listed()
			n.to.until(t, "completeness", func(map[string]string) bool { return n.to.isComplete() })
			set(t, n.cluster.CiliumEndpoints, fmt.Sprintf(endpoint, "b"))
			set(t, n.cluster.Pods, pod("b", "x", "10.0.0.2"))
			n.to.untilNames(t, "10.0.0.9")
			if len(n.ids.asked) > 0 {
				t.Error("an identity was asked for")
			}
			remove(n.world, n.cluster.CiliumEndpoints, "prod/b")
			n.to.untilNames(t)
			gone()
			n.untilPublished(t, "10.0.0.1 x a", "10.0.0.2 x b")
			begin(n)
			n.to.untilNames(t)
			n.ids.untilUses(t, map[string]int{})
		})
	}
}

// A publisher that stops withdraws nothing and releases nothing.
func TestTheEndOfPublishingWithdrawsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := newTarget()
	ids := newIdentities(to)
	ids.hold["stuck"] = make(chan struct{})
	set(t, w.cluster.Pods, pod("a", "x", "10.0.0.1"))
	set(t, w.cluster.Pods, pod("b", "stuck", "10.0.0.2"))
	w.listed()
	stop := background(t, NewPods(w.cluster, cluster2(), PodsParams{
		Node: "node1", DefaultGlobalNamespace: true, Allocate: ids.allocate, Release: ids.release, To: to, Log: discard(),
	}).Run)
	to.untilNames(t, "10.0.0.1")
	for asked := 0; asked < 2; asked++ {
		<-ids.asked
	}
	stop()
	if to.isComplete() || len(to.get()) != 1 || !cmp.Equal(ids.uses, map[string]int{"x": 1}) {
		t.Errorf("complete %t, published %v, references %v", to.isComplete(), to.get(), ids.uses)
	}
}
