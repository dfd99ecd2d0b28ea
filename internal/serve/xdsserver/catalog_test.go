package xdsserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var (
	alice = netip.MustParseAddr("10.0.0.1")
	bob   = netip.MustParseAddr("10.0.0.2")
)

func catalogOf(t *testing.T) (*viewtest.World, *catalog) {
	t.Helper()
	w := viewtest.New(t)
	return w, newCatalog(Params{View: w.View, Zones: []string{"clusterset.local"}, Boundary: boundary.New(nil).Part("xds"), Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler)}, "x.")
}

// many returns n backends for a line of a test.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " 10.%d.%d.%d", i/65536, i/256%256, i%256)
	}
	return b.String()
}

// spellings returns n ways to write a name in DNS.
func spellings(n int) (all []string) {
	for i := range n {
		name := []byte("aaaaaaaaaaaa.shop.svc.clusterset.local:http")
		for bit := range 12 {
			if i>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		all = append(all, string(name))
	}
	return all
}

// TestSpellings: a large service has one assignment, however its name is written, and is chosen once.
func TestSpellings(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	w.Play(t, "service east shop/aaaaaaaaaaaa"+many(20_000))
	names := append(spellings(2000), "shop/aaaaaaaaaaaa:http")
	waittest.Must(t, c.follow(alice, c.kept.Reserve, endpointKind, names))
	s := serviceName{"shop", "aaaaaaaaaaaa"}
	if len(c.targets[s]) != 1 || len(c.named[endpointKind].entries) != len(names) {
		t.Fatalf("%d assignments for %d names", len(c.targets[s]), len(c.named[endpointKind].entries))
	}
	one := c.targets[s][target{s, "http"}].now
	for _, name := range names {
		if c.named[endpointKind].entries[name].body != one {
			t.Fatalf("%s has an assignment of its own", name)
		}
	}
	if sum := c.kept.Sum(); sum > 3<<20 {
		t.Errorf("%d bytes are counted", sum)
	}
	w.Play(t, "service east shop/aaaaaaaaaaaa 10.0.0.1")
	c.update(map[serviceName]struct{}{s: {}})
	if e := c.named[endpointKind].entries[names[7]]; e.body == one || e.usable != 1 {
		t.Errorf("after a change: %+v", e)
	}
	c.unfollow(alice, endpointKind, names)
	if c.kept.Sum() != 0 || len(c.targets) != 0 || len(c.follows[endpointKind]) != 0 || len(c.named[endpointKind].entries) != 0 {
		t.Errorf("%d bytes, %v are kept", c.kept.Sum(), c.targets)
	}
}

// TestOneTargetForEachPort: leading zeros do not make another port.
func TestOneTargetForEachPort(t *testing.T) {
	t.Parallel()
	n := newNaming([]string{"clusterset.local"})
	first, _ := n.parse("shop/cart:80")
	for _, name := range []string{"shop/cart:080", "cart.shop.svc.clusterset.local:80", "CART.shop.SVC.clusterset.LOCAL.:00080"} {
		if got, ok := n.parse(name); !ok || got != first {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestShares: one client takes its share, of any kind of resource, and others have room. A refused name leaves nothing
// behind.
func TestShares(t *testing.T) {
	t.Parallel()
	for k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			w, c := catalogOf(t)
			c.kept = newAmount(2 << 20)
			w.Play(t, "service east shop/a 10.0.0.1")
			var followed [][]string
			for i := range 100_000 {
				names := []string{fmt.Sprintf("shop/s%d:80", i), fmt.Sprintf("shop/s%d:81", i)}
				before := c.kept.Sum()
				err := c.follow(alice, c.kept.Reserve, k, names)
				if exceeded, is := errors.AsType[*quota.Exceeded](err); is {
					if !exceeded.Own || c.kept.Sum() != before || len(c.follows[k]) != 2*len(followed) {
						t.Errorf("%v: %d, before %d; %d names", err, c.kept.Sum(), before, len(c.follows[k]))
					}
					break
				}
				waittest.Must(t, err)
				followed = append(followed, names)
			}
			if n := len(followed); n == 100_000 || c.kept.Held(alice) > 1<<19 {
				t.Fatalf("%d names, %d bytes", n, c.kept.Held(alice))
			}
			waittest.Must(t, c.follow(bob, c.kept.Reserve, k, []string{"shop/a:http"}))
			for _, names := range followed {
				c.unfollow(alice, k, names)
			}
			c.unfollow(bob, k, []string{"shop/a:http"})
			if c.kept.Sum() != 0 {
				t.Errorf("%d bytes are left", c.kept.Sum())
			}
		})
	}
}

// TestHoldings: a resource that several clients follow is charged to one of them.
func TestHoldings(t *testing.T) {
	t.Parallel()
	kept := newAmount(400)
	var h holding
	check := func(a, b int64) {
		t.Helper()
		if kept.Held(alice) != a || kept.Held(bob) != b {
			t.Errorf("%d and %d, not %d and %d", kept.Held(alice), kept.Held(bob), a, b)
		}
	}
	waittest.Must(t, h.join(kept.Reserve, alice, 60))
	waittest.Must(t, h.join(kept.Reserve, alice, 60))
	waittest.Must(t, h.join(kept.Reserve, bob, 60))
	check(60, 0)
	waittest.Must(t, cmp.Or(kept.Reserve(bob, 50), h.resize(kept, 90, false)))
	check(90, 50)
	for range 2 {
		if h.leave(kept, alice) {
			t.Error("nobody is said to follow it")
		}
	}
	check(0, 140) // above the share: the resource is there already
	if h.resize(kept, 91, false) == nil {
		t.Error("it became larger without room")
	}
	waittest.Must(t, h.resize(kept, 10, false))
	check(0, 60)
	if !h.leave(kept, bob) {
		t.Error("somebody is said to follow it")
	}
	check(0, 50)
}

// TestGrowthWithoutRoom: a service that becomes large while there is no memory has fewer backends, and clients still
// get the changes of the resources that they follow.
func TestGrowthWithoutRoom(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	c.kept = newAmount(128 << 10)
	w.Play(t, "service east shop/a 10.0.0.1")
	waittest.Must(t, c.follow(alice, c.kept.Reserve, endpointKind, []string{"shop/a:http"}))
	w.Play(t, "service east shop/a"+many(20_000))
	s := serviceName{"shop", "a"}
	c.update(map[serviceName]struct{}{s: {}})
	now := c.targets[s][target{s, "http"}].now
	if len(now.bytes) > minAssignment || now.usable < 100 || now.usable+now.leftOut != 20_000 || c.leftOut != now.leftOut {
		t.Errorf("%d bytes, %d backends, %d left out", len(now.bytes), now.usable, now.leftOut)
	}
}

// portsService has this many ports, and one backend.
func portsService(cluster, name string, first, ports int) *services.Service {
	s := &services.Service{Cluster: cluster, ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, IncludeExternal: true, Namespace: "shop", Name: name}
	for i := range ports {
		s.Ports = append(s.Ports, services.Port{Name: fmt.Sprint("p", i), Protocol: "TCP", Port: uint16(first + i)})
	}
	s.Backends = []services.Backend{{IP: alice, Ports: s.Ports}}
	return s
}

// TestManyPorts: a cluster with 300,000 ports takes its share of Envoys' clusters. The services of other clusters have
// theirs, and get room when some becomes free.
func TestManyPorts(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	for i := range 600 {
		w.Apply(portsService("aaa", fmt.Sprint("bad", i), 1, 500))
	}
	for i := range 3000 {
		w.Apply(portsService("zzz", fmt.Sprint("good", i), 80, 2))
	}
	w.Play(t, "service own shop/own ports=http:80 10.0.0.1")
	w.Apply(portsService("aaa", "own", 1000, 500))
	c.followEverything()
	count := func(prefix string) (n int) {
		for name := range c.all.entries {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		return n
	}
	if good, bad := count("shop/good"), count("shop/bad"); good != 6000 || bad > maxClustersOfPeer || bad < maxClustersOfPeer/2 {
		t.Errorf("%d good, %d bad", good, bad)
	}
	if _, is := c.all.entries["shop/own:80"]; !is || count("shop/own") > maxPorts {
		t.Errorf("%v, %d of the own service", is, count("shop/own"))
	}
	if c.clusters.out < 270_000 {
		t.Errorf("%d are left out", c.clusters.out)
	}
	changed := make(map[serviceName]struct{})
	for i := range 590 {
		w.Play(t, fmt.Sprintf("no-service aaa shop/bad%d", i))
		changed[serviceName{"shop", fmt.Sprint("bad", i)}] = struct{}{}
	}
	c.update(changed)
	if bad := count("shop/bad"); bad != 10*maxPorts {
		t.Errorf("%d after there was room", bad)
	}
	c.unfollowEverything()
	if len(c.all.entries) != 0 || c.clusters.room.Sum() != 0 || c.clusters.out != 0 {
		t.Errorf("%d are left", len(c.all.entries))
	}
}

// TestClusterListHasNamesOfClients: an Envoy that follows everything gets the clusters of imported services under the
// names that clients use, once each, in any order of the changes.
func TestClusterListHasNamesOfClients(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	derived := wire.DerivedServiceName("shop", "cart")
	list := func() string {
		return strings.Join(slices.Sorted(maps.Keys(c.all.entries)), " ")
	}
	w.Play(t, "service east shop/"+derived+" 10.0.0.1\nservice east shop/other 10.0.0.2")
	c.followEverything()
	for _, step := range []struct{ line, want string }{
		{"", "shop/" + derived + ":8080 shop/other:8080"},
		{"export east shop/cart", "shop/cart:8080 shop/other:8080"},
		{"service east shop/cart 10.0.0.3,ports=a:1", "shop/cart:1 shop/other:8080"},                // the own cluster does not import it
		{"service own shop/" + derived + " ports=http:80 10.0.0.4", "shop/cart:80 shop/other:8080"}, // now it does
		{"no-service own shop/" + derived, "shop/cart:1 shop/other:8080"},
		{"no-service east shop/cart", "shop/cart:8080 shop/other:8080"},
		{"no-export east shop/cart", "shop/" + derived + ":8080 shop/other:8080"},
	} {
		if step.line != "" {
			w.Play(t, step.line)
			all := make(map[serviceName]struct{})
			for _, name := range []string{"cart", derived} { // one of them changed
				all[serviceName{"shop", name}] = struct{}{}
			}
			c.update(all)
		}
		if got := list(); got != step.want {
			t.Errorf("after %q: %s, want %s", step.line, got, step.want)
		}
		c.unfollowEverything()
		c.followEverything()
		if got := list(); got != step.want {
			t.Errorf("after %q, from the beginning: %s, want %s", step.line, got, step.want)
		}
	}
}

// TestNamesAreCounted: the metric of the followed names is right after streams that begin and end at the same time.
func TestNamesAreCounted(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	s := &Server{catalog: c, metrics: c.metrics, names: DefaultNames, now: time.Now}
	w.Play(t, "service east shop/a 10.0.0.1")
	for range 500 {
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				stream := &clientStream{s: s, client: new(client), owner: alice}
				if err := stream.setNames(endpointKind, map[string]struct{}{fmt.Sprintf("shop/a:%d", i): {}}, false); err != nil {
					t.Error(err)
				}
				stream.leave()
			})
		}
		group.Wait()
		if n := testutil.ToFloat64(c.metrics.names.WithLabelValues(endpointKind.String())); n != 0 {
			t.Fatalf("%v names, and no client", n)
		}
	}
}
