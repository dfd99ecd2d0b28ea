package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// followed are the resources with their filters, each with a value that some of what
// [churn] makes passes.
var followed = map[string][]string{
	"clusters":       {"cluster=c2", "name=c3"},
	"nodes":          {"cluster=c2", "name=n1", "prefix=10.0.0.0/24", "labels=app%3Dweb"},
	"services":       {"cluster=c2", "namespace=x", "name=s1", "labels=app%3Dweb"},
	"serviceexports": {"cluster=c2", "namespace=x", "name=s1"},
	"identities":     {"cluster=c2", "namespace=x", "identity=70001", "labels=k8s%3Aapp%3Dweb"},
	"ips":            {"cluster=c2", "namespace=x", "name=p1", "identity=70001", "prefix=10.0.0.0/31", "labels=app%3Dweb", "cluster=c2&namespace=x", "labels=app%3Dweb&cluster=c2"},
	"conflicts":      {"cluster=c2", "kind=ip", "name=10.0.0.1/32"},
	"events":         {"cluster=c2", "kind=conflict", "name=ip/10.0.0.1/32"},
	"health":         {"cluster=c2", "name=remote-cluster.c2"},
}

// inBubble makes rapid leave the deadline of the test alone, which synctest refuses to
// tell.
type inBubble struct{ *testing.T }

// someFollowers are as many mirrors, one of everything and others each of a resource
// with a filter or without.
func someFollowers(f *fixture, rt *rapid.T, n int) []*mirror {
	all := []*mirror{{f: f}}
	for _, resource := range slices.Sorted(maps.Keys(followed)) {
		for _, filter := range append([]string{""}, followed[resource]...) {
			all = append(all, &mirror{f: f, resource: resource, filter: filter})
		}
	}
	others := rapid.Permutation(all[1:]).Draw(rt, "followers")
	return append(all[:1], others[:n-1]...)
}

// TestWhatIsFollowedIsWhatIsListed: whatever changes, and wherever connections are
// cut and watches go on, each follower has in the end what the list has, byte for
// byte, and never sees the end of what it did not have.
func TestWhatIsFollowedIsWhatIsListed(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			rapid.Check(inBubble{t}, func(rt *rapid.T) { followsTheLists(t, rt) })
		})
	}
}

func followsTheLists(t *testing.T, rt *rapid.T) {
	// With the small rings nearly everybody falls behind at some time.
	ring := rapid.SampledFrom([]uint64{12, 40, view.RingSize}).Draw(rt, "ring")
	f := newFixtureOf(t, ring)
	f.now, f.heartbeat = time.Now, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.View.Run(ctx) // it ends with ctx
	}()
	every := someFollowers(f, rt, 12)
	defer func() {
		for _, m := range every {
			m.cut()
		}
		cancel()
		<-done
		f.Close()
	}()
	world := newChurn(f)
	actions := world.actions()
	for _, name := range slices.Sorted(maps.Keys(actions)) { // there is something
		actions[name](rt)
	}
	for _, m := range every {
		m.connect(t)
	}
	pick := func(rt *rapid.T) *mirror { return rapid.SampledFrom(every).Draw(rt, "follower") }
	actions["read"] = func(rt *rapid.T) { pick(rt).readUpTo(rapid.IntRange(1, 5).Draw(rt, "events")) }
	actions["everybody reads"] = func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "events")
		for _, m := range every {
			m.readUpTo(n)
		}
	}
	actions["cut"] = func(rt *rapid.T) {
		m := pick(rt)
		m.cut()
		m.connect(t)
	}
	actions["everybody is cut"] = func(rt *rapid.T) {
		for _, m := range every {
			m.cut()
		}
		for _, name := range slices.Sorted(maps.Keys(world.actions())) {
			actions[name](rt)
		}
		for _, m := range every {
			m.connect(t)
		}
	}
	actions["time passes"] = func(rt *rapid.T) {
		time.Sleep(time.Duration(rapid.IntRange(1, 8000).Draw(rt, "milliseconds")) * time.Millisecond)
	}
	actions[""] = func(rt *rapid.T) {
		for _, m := range every {
			if err := m.trouble(); err != nil {
				rt.Fatal(err)
			}
		}
	}
	rt.Repeat(actions)
	time.Sleep(10 * time.Second)
	for _, m := range every {
		m.readAll()
		if err := cmp.Or(m.trouble(), m.differs(t)); err != nil {
			rt.Fatal(err)
		}
	}
}
