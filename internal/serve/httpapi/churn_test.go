package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

// churn makes random changes of all kinds of objects.
type churn struct {
	f          *fixture
	nodes      map[string]*nodes.Node
	services   map[string]*services.Service
	exports    map[string]*services.Export
	identities map[string]*identities.Identity
	claims     map[string]*ipcache.Entry
}

func newChurn(f *fixture) *churn {
	return &churn{
		f: f, nodes: make(map[string]*nodes.Node), services: make(map[string]*services.Service), exports: make(map[string]*services.Export),
		identities: make(map[string]*identities.Identity), claims: make(map[string]*ipcache.Entry),
	}
}

// become sets the current object of a name, nil for none.
func become[T any](all map[string]*T, name string, now *T) store.Change[T] {
	ch := store.Change[T]{Name: name, Old: all[name], New: now}
	if all[name] = now; now == nil {
		delete(all, name)
	}
	return ch
}

func (c *churn) actions() map[string]func(*rapid.T) {
	one := func(t *rapid.T, of ...string) string { return rapid.SampledFrom(of).Draw(t, "one") }
	id := func(cluster string) uint32 { return uint32(cluster[1] - '0') }
	there := func(t *rapid.T) bool { return rapid.IntRange(0, 2).Draw(t, "there") > 0 }
	return map[string]func(*rapid.T){
		"address": func(t *rapid.T) {
			// Some prefixes change more often, and several times between two reads.
			for range rapid.IntRange(1, 4).Draw(t, "times") {
				cluster, p := one(t, "c2", "c3"), one(t, "10.0.0.1/32", "10.0.0.1/32", "10.0.0.2/32")
				name := cluster + p
				var op ipcache.Op
				op.Old = c.claims[name]
				if delete(c.claims, name); there(t) {
					op.New = ipcache.NewEntry(ipcache.Spec{
						Prefix: prefix(p), Cluster: &ipcache.Claimant{Name: cluster, ID: id(cluster)}, Source: wire.SourceClusterMesh,
						Identity:  rapid.SampledFrom([]uint32{70001, 70002}).Draw(t, "identity"),
						Namespace: one(t, "x", "y", "z"), Name: one(t, "p1", "p2"),
					})
					c.claims[name] = op.New
				}
				if op.Old != nil || op.New != nil {
					c.f.ips.Apply([]ipcache.Op{op})
				}
			}
		},
		"node": func(t *rapid.T) {
			cluster, name := one(t, "c2", "c3"), one(t, "n1", "n2")
			var n *nodes.Node
			if there(t) {
				n = &nodes.Node{
					Cluster: cluster, ClusterID: id(cluster), Name: name, Source: wire.SourceClusterMesh, Labels: map[string]string{"app": one(t, "web", "db")},
					Addresses: []nodes.Address{{Type: "InternalIP", IP: netip.MustParseAddr(one(t, "10.0.0.9", "10.9.0.9"))}},
				}
			}
			c.f.nodes.Apply([]store.Change[nodes.Node]{become(c.nodes, cluster+"/"+name, n)})
		},
		"service": func(t *rapid.T) {
			cluster, namespace, name := one(t, "c2", "c3"), one(t, "x", "y"), one(t, "s1", "s2")
			var s *services.Service
			if there(t) {
				s = &services.Service{
					Cluster: cluster, ClusterID: id(cluster), Namespace: namespace, Name: name, Shared: there(t), Source: wire.SourceClusterMesh,
					Labels: map[string]string{"app": one(t, "web", "db")}, Backends: []services.Backend{{IP: netip.MustParseAddr(one(t, "10.0.0.1", "10.0.0.2"))}},
				}
			}
			c.f.services.Apply([]store.Change[services.Service]{become(c.services, cluster+"/"+namespace+"/"+name, s)})
		},
		"export": func(t *rapid.T) {
			cluster, namespace, name := one(t, "c2", "c3"), one(t, "x", "y"), one(t, "s1", "s2")
			var e *services.Export
			if there(t) {
				e = &services.Export{Cluster: cluster, Namespace: namespace, Name: name, Type: wire.ServiceExportClusterSetIP, Affinity: one(t, wire.SessionAffinityNone, wire.SessionAffinityClientIP)}
			}
			c.f.services.ApplyExports([]store.Change[services.Export]{become(c.exports, cluster+"/"+namespace+"/"+name, e)})
		},
		"identity": func(t *rapid.T) {
			cluster, number := one(t, "c2", "c3"), rapid.SampledFrom([]uint32{70001, 70002}).Draw(t, "identity")
			var i *identities.Identity
			if there(t) {
				labels := wire.ParseLabels("k8s:app=" + one(t, "web", "db") + ";k8s:io.kubernetes.pod.namespace=" + one(t, "x", "y") + ";")
				i = &identities.Identity{ID: number, ClusterID: id(cluster), Cluster: cluster, Labels: identities.NewLabels(labels)}
			}
			c.f.identities.Apply([]store.Change[identities.Identity]{become(c.identities, fmt.Sprint(cluster, number), i)})
		},
		"cluster":  c.cluster,
		"findings": func(*rapid.T) { c.f.watch.Look(time.Now()) },
		"health": func(t *rapid.T) {
			scope := c.f.scopes.NewScope("job")
			scope.OK(one(t, "well", "very well"))
			if !there(t) {
				scope.Close()
			}
		},
	}
}

// cluster adds a cluster, removes one, or makes one doubtful; its revision may stay the same.
func (c *churn) cluster(t *rapid.T) {
	name := rapid.SampledFrom([]string{"c2", "c3"}).Draw(t, "name")
	now := readyCluster(name, uint32(name[1]-'0'))
	now.LastEvent, now.LastSuccess = time.Now(), time.Now()
	for r, src := range now.Families {
		src.Freshness.AsOf = time.Now().Add(-time.Second)
		src.Freshness.State = rapid.SampledFrom([]remotecluster.FreshnessState{remotecluster.FreshnessSynced, remotecluster.FreshnessSynced, remotecluster.FreshnessStale}).Draw(t, "state")
		now.Families[r] = src
	}
	there, silent := rapid.IntRange(0, 2).Draw(t, "there") > 0, rapid.Bool().Draw(t, "silent")
	change := c.f.mesh.Set
	if silent {
		change = c.f.mesh.SetUnnoticed
	}
	change(func(is *fakemesh.Facts) {
		all := slices.DeleteFunc(slices.Clone(is.Clusters), func(s remotecluster.Status) bool { return s.Name == name })
		if there {
			all = append(all, now)
		}
		slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
		is.Clusters = all
	})
}

// followed are the resources with their filters, each with a value that some objects of [churn] pass.
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

// inBubble hides the deadline of the test from rapid, as synctest does not allow to read it.
type inBubble struct{ *testing.T }

// someFollowers returns n mirrors: one of everything, and others of one resource, with a filter or without.
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

// TestWhatIsFollowedIsWhatIsListed: with any changes, and with connections that are cut and resumed at any place, each
// follower ends with the contents of the list, byte for byte, and never gets a deletion of an object that it did not
// have.
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
	// With the small rings most followers fall behind at some time.
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
	for _, name := range slices.Sorted(maps.Keys(actions)) { // so that there are objects
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
