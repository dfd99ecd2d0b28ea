package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	nodeNames := func(t *testing.T, q string) []string {
		return names(list[api.Node](t, f, "/v1/nodes"+q).Items, func(n api.Node) string { return n.Cluster + "/" + n.Name })
	}
	serviceNames := func(t *testing.T, q string) []string {
		return names(list[api.Service](t, f, "/v1/services"+q).Items, func(s api.Service) string { return s.Namespace + "/" + s.Name })
	}
	identityNames := func(t *testing.T, q string) []string {
		return names(list[api.Identity](t, f, "/v1/identities"+q).Items, func(i api.Identity) string { return fmt.Sprint(i.ID) })
	}
	ipNames := func(t *testing.T, q string) []string {
		return names(list[api.IP](t, f, "/v1/ips"+q).Items, func(i api.IP) string { return i.Prefix })
	}
	clusterNames := func(t *testing.T, q string) []string {
		return names(list[api.Cluster](t, f, "/v1/clusters"+q).Items, func(c api.Cluster) string { return c.Name })
	}
	healthNames := func(t *testing.T, q string) []string {
		return names(list[api.Health](t, f, "/v1/health"+q).Items, func(h api.Health) string { return h.Name })
	}
	for _, test := range []struct {
		list  func(*testing.T, string) []string
		query string
		want  []string
	}{
		{clusterNames, "?cluster=c3", []string{"c3"}},
		{clusterNames, "?name=c2", []string{"c2"}},
		{clusterNames, "?name=c2&cluster=c3", nil},
		{nodeNames, "?cluster=c2", []string{"c2/n1", "c2/n2"}},
		{nodeNames, "?name=n1", []string{"c2/n1", "c3/n1"}},
		{nodeNames, "?name=n1&cluster=c3", []string{"c3/n1"}},
		{nodeNames, "?cluster=nope", nil},
		{nodeNames, "?cluster=", []string{"c2/n1", "c2/n2", "c3/n1"}},
		{nodeNames, "?prefix=10.2.1.1", []string{"c2/n1"}},
		{nodeNames, "?prefix=10.2.0.0/16", []string{"c2/n1"}},
		{nodeNames, "?prefix=10.2.1.77", nil},
		{serviceNames, "?namespace=db", []string{"db/empty", "db/own"}},
		{serviceNames, "?name=web", []string{"default/web"}},
		{serviceNames, "?cluster=c3", []string{"db/empty", "default/web"}},
		{identityNames, "?cluster=c3", []string{"196608"}},
		{identityNames, "?identity=131072", []string{"131072"}},
		{identityNames, "?namespace=default", []string{"131072"}},
		{ipNames, "?cluster=c3", []string{"fd00::1/128"}},
		{ipNames, "?namespace=default", []string{"10.2.1.10/32"}},
		{ipNames, "?name=web-0", []string{"10.2.1.10/32"}},
		{ipNames, "?name=n1&identity=6", []string{"192.168.2.1/32"}},
		{ipNames, "?prefix=10.2.1.0/24", []string{"10.2.1.0/24", "10.2.1.2/32", "10.2.1.3/32", "10.2.1.10/32"}},
		{ipNames, "?prefix=10.2.1.0/29", []string{"10.2.1.2/32", "10.2.1.3/32"}},
		{ipNames, "?prefix=10.2.1.3", []string{"10.2.1.3/32"}},
		{ipNames, "?prefix=10.2.1.3/24", []string{"10.2.1.0/24", "10.2.1.2/32", "10.2.1.3/32", "10.2.1.10/32"}},
		{ipNames, "?prefix=::ffff:10.2.1.3", []string{"10.2.1.3/32"}},
		{ipNames, "?prefix=0.0.0.0/0", []string{"10.2.1.0/24", "10.2.1.2/32", "10.2.1.3/32", "10.2.1.10/32", "192.168.2.1/32"}},
		{ipNames, "?prefix=::/0", []string{"fd00::1/128"}},
		{ipNames, "?prefix=11.0.0.0/8", nil},
		{healthNames, "?cluster=c2", []string{"remote-cluster.c2"}},
		{healthNames, "?name=clustermesh", []string{"clustermesh"}},
	} {
		t.Run(test.query, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.list(t, test.query)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func names[T any](items []T, name func(T) string) []string {
	var out []string
	for _, i := range items {
		out = append(out, name(i))
	}
	return out
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	for name, target := range map[string]string{
		"no limit at all":                  "/v1/ips?limit=",
		"limit 0":                          "/v1/ips?limit=0",
		"a negative limit":                 "/v1/ips?limit=-1",
		"a very negative limit":            "/v1/ips?limit=-99999999999999999999",
		"a limit in words":                 "/v1/ips?limit=ten",
		"half a limit":                     "/v1/ips?limit=1.5",
		"two limits":                       "/v1/ips?limit=1&limit=2",
		"a cursor that is no base64":       "/v1/ips?cursor=%21",
		"a cursor that nobody gave":        "/v1/ips?cursor=bm9wZQ",
		"a cursor of another list":         "/v1/ips?cursor=" + transport.EncodeCursor("nodes", "c2/n1"),
		"a cursor without a key":           "/v1/ips?cursor=" + transport.EncodeCursor("ips", ""),
		"a cursor with a wrong key":        "/v1/ips?cursor=" + transport.EncodeCursor("ips", "nope"),
		"a service cursor with a bad key":  "/v1/services?cursor=" + transport.EncodeCursor("services", "nope"),
		"an identity cursor, a bad number": "/v1/identities?cursor=" + transport.EncodeCursor("identities", "x/c2"),
		"a cursor with padding":            "/v1/ips?cursor=" + base64.URLEncoding.EncodeToString([]byte("1/ips/10.0.0.1/32")),
		"an identity in words":             "/v1/ips?identity=web",
		"an identity beyond 32 bits":       "/v1/ips?identity=4294967296",
		"a prefix in words":                "/v1/ips?prefix=web",
		"a prefix that is too long":        "/v1/ips?prefix=10.0.0.0/33",
		"an address with a zone":           "/v1/ips?prefix=fe80::1%25eth0",
		"a filter that the list lacks":     "/v1/nodes?namespace=default",
		"a filter that does not exist":     "/v1/nodes?clsuter=c2",
		"a query that cannot be read":      "/v1/nodes?cluster=%zz",
		"an identity's name in words":      "/v1/identities/web",
		"an ip's name in words":            "/v1/ips/web",
		"a prefix's length in words":       "/v1/ips/10.0.0.0/web",
		"looking up a name":                "/v1/lookup/localhost",
		"looking up a prefix":              "/v1/lookup/10.0.0.0%2F8",
		"looking up an address in a zone":  "/v1/lookup/fe80::1%25eth0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.wantProblem(t, http.MethodGet, target, http.StatusBadRequest)
		})
	}
}

func TestLimitIsClamped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = api.MaxLimit + 10
	changes := make([]store.Change[nodes.Node], n)
	for i := range changes {
		changes[i].New = &nodes.Node{Cluster: "c2", Name: fmt.Sprintf("n%06d", i), Source: wire.SourceClusterMesh}
	}
	f.nodes.Apply(changes)
	for _, limit := range []string{"5001", "6000", "99999999999999999999"} {
		l := list[api.Node](t, f, "/v1/nodes?limit="+limit)
		if len(l.Items) != api.MaxLimit || l.Next == "" {
			t.Errorf("limit %s: %d items, next %q", limit, len(l.Items), l.Next)
		}
	}
	if l := list[api.Node](t, f, "/v1/nodes"); len(l.Items) != n || l.Next != "" {
		t.Errorf("no limit: %d items, next %q", len(l.Items), l.Next)
	}
}

// TestLastPage: a page that ends exactly with the last item has no next one.
func TestLastPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	first := list[api.Node](t, f, "/v1/nodes?limit=2&cursor=")
	if len(first.Items) != 2 || first.Next == "" {
		t.Fatalf("first page: %+v", first)
	}
	second := list[api.Node](t, f, "/v1/nodes?limit=1&cursor="+first.Next)
	if len(second.Items) != 1 || second.Next != "" {
		t.Errorf("second page: %+v", second)
	}
	if all := list[api.Node](t, f, "/v1/nodes?limit=3"); len(all.Items) != 3 || all.Next != "" {
		t.Errorf("one page: %+v", all)
	}
	// The filters apply before the limit.
	if two := list[api.Node](t, f, "/v1/nodes?limit=2&cluster=c2"); len(two.Items) != 2 || two.Next != "" {
		t.Errorf("filtered page: %+v", two)
	}
	rest := list[api.IP](t, f, "/v1/ips?prefix=10.2.1.0/24&cursor="+transport.EncodeCursor("ips", "10.2.1.2/32"))
	if got := names(rest.Items, func(i api.IP) string { return i.Prefix }); !slices.Equal(got, []string{"10.2.1.3/32", "10.2.1.10/32"}) {
		t.Errorf("cursor and prefix: %v", got)
	}
	early := list[api.IP](t, f, "/v1/ips?prefix=10.2.1.0/24&cursor="+transport.EncodeCursor("ips", "1.1.1.1/32"))
	if len(early.Items) != 4 {
		t.Errorf("a cursor before the prefix: %+v", early.Items)
	}
}

// TestPagingWhileWritersChurn reads every list in small pages while writers add and remove other objects: the objects
// that are always there are seen exactly once, and the revision never decreases.
func TestPagingWhileWritersChurn(t *testing.T) {
	t.Parallel()
	const steady = 60
	f := newFixture(t)
	var clusters []remotecluster.Status
	c2 := &ipcache.Claimant{Name: "c2", ID: 2}
	for i := range steady {
		f.nodes.Apply(created(&nodes.Node{Cluster: "c2", Name: fmt.Sprintf("keep-%d", i), Source: wire.SourceClusterMesh}))
		f.services.Apply(created(&services.Service{Cluster: "c2", Namespace: "ns", Name: fmt.Sprintf("keep-%d", i), Shared: true, Source: wire.SourceClusterMesh}))
		f.services.ApplyExports(created(&services.Export{Cluster: "c2", Namespace: "ns", Name: fmt.Sprintf("keep-%d", i)}))
		f.identities.Apply([]store.Change[identities.Identity]{{Name: fmt.Sprint(1000 + 2*i), New: &identities.Identity{ID: uint32(1000 + 2*i), Cluster: "keep"}}})
		f.ips.Apply(claimed(ipcache.Spec{Prefix: keptPrefix(i), Cluster: c2, Source: wire.SourceClusterMesh, Name: "keep"}))
		clusters = append(clusters, readyCluster(fmt.Sprintf("keep-%02d", i), 2))
	}
	f.mesh.SetClusters(clusters...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for w := range 2 {
		wg.Go(func() { f.churn(c2, w, stop) })
	}
	for round := range 3 {
		walk(t, f, "nodes", steady, func(n api.Node) string { return n.Name })
		walk(t, f, "services", steady, func(s api.Service) string { return s.Name })
		walk(t, f, "serviceexports", steady, func(e api.ServiceExport) string { return e.Name })
		walk(t, f, "identities", steady, func(i api.Identity) string { return fmt.Sprintf("%s-%d", i.Cluster, i.ID) })
		walk(t, f, "ips", steady, func(i api.IP) string { return i.Pod + "-" + i.Prefix })
		walk(t, f, "clusters", steady, func(c api.Cluster) string { return c.Name })
		walk(t, f, "health", steady, func(h api.Health) string { return strings.TrimPrefix(h.Name, "remote-cluster.") })
		if t.Failed() {
			t.Fatal("in round", round)
		}
	}
}

func keptPrefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
}

// churn adds and removes objects between the steady ones until stop is closed.
func (f *fixture) churn(c *ipcache.Claimant, writer int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		name := fmt.Sprintf("keep-%d-churn-%d", i%60, writer)
		n := &nodes.Node{Cluster: "c2", Name: name, Source: wire.SourceClusterMesh}
		s := &services.Service{Cluster: "c2", Namespace: "ns", Name: name, Shared: true, Source: wire.SourceClusterMesh}
		x := &services.Export{Cluster: "c2", Namespace: "ns", Name: name}
		id := &identities.Identity{ID: uint32(1001 + 2*(i%60)), Cluster: fmt.Sprint("churn", writer)}
		e := ipcache.NewEntry(ipcache.Spec{Prefix: netip.PrefixFrom(keptPrefix(i%60).Addr().Next(), 32), Cluster: c, Source: wire.SourceClusterMesh, Name: "churn"})
		f.nodes.Apply(created(n))
		f.services.Apply(created(s))
		f.services.ApplyExports(created(x))
		f.identities.Apply([]store.Change[identities.Identity]{{Name: fmt.Sprint(id.ID), New: id}})
		f.ips.Apply([]ipcache.Op{{New: e}})
		f.nodes.Apply([]store.Change[nodes.Node]{{Old: n}})
		f.services.Apply([]store.Change[services.Service]{{Old: s}})
		f.services.ApplyExports([]store.Change[services.Export]{{Old: x}})
		f.identities.Apply([]store.Change[identities.Identity]{{Name: fmt.Sprint(id.ID), Old: id}})
		f.ips.Apply([]ipcache.Op{{Old: e}})
	}
}

// walk reads a list in pages of 7 and checks that each steady object occurs once.
func walk[T any](t *testing.T, f *fixture, resource string, steady int, name func(T) string) {
	t.Helper()
	seen := make(map[string]int)
	cursor, revision := "", uint64(0)
	for {
		page := list[T](t, f, "/v1/"+resource+"?limit=7&cursor="+cursor)
		if page.Revision < revision {
			t.Errorf("%s: the revision went from %d back to %d", resource, revision, page.Revision)
		}
		revision = page.Revision
		for _, item := range page.Items {
			seen[name(item)]++
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	kept := 0
	for name, n := range seen {
		if strings.HasPrefix(name, "keep") && !strings.Contains(name, "churn") {
			kept++
			if n != 1 {
				t.Errorf("%s: %s came %d times", resource, name, n)
			}
		}
	}
	if kept != steady {
		t.Errorf("%s: %d of %d steady objects came", resource, kept, steady)
	}
}

func TestRevisionGrowsWithEveryChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	last := list[api.Node](t, f, "/v1/nodes").Revision
	for name, change := range map[string]func(){
		"cluster": func() {
			f.mesh.Set(func(is *fakemesh.Facts) { is.Clusters = append(is.Clusters, readyCluster("c4", 4)) })
		},
		"node": func() { f.nodes.Apply(created(&nodes.Node{Cluster: "c9", Name: "n"})) },
		"service": func() {
			f.services.Apply(created(&services.Service{Cluster: "c9", Namespace: "n", Name: "n", Shared: true}))
		},
		"identity": func() { f.identities.Apply(created(&identities.Identity{ID: 77, Cluster: "c9"})) },
		"node away": func() {
			f.nodes.Apply([]store.Change[nodes.Node]{{Old: &nodes.Node{Cluster: "c2", Name: "n2", Source: wire.SourceClusterMesh}}})
		},
	} {
		change()
		now := list[api.Node](t, f, "/v1/nodes").Revision
		if now <= last {
			t.Errorf("%s: %d after %d", name, now, last)
		}
		last = now
	}
	f.ips.Apply(claimed(ipcache.Spec{Prefix: prefix("10.77.0.0/16"), Cluster: &ipcache.Claimant{Name: "c9", ID: 9}, Source: wire.SourceClusterMesh}))
	waittest.Until(t, "the revision to grow with an address", func() bool { return list[api.Node](t, f, "/v1/nodes").Revision > last })
}

// TestAddressesAreThereAtOnce: an answer has all that was applied before the request, also shortly after another
// answer.
func TestAddressesAreThereAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := &ipcache.Claimant{Name: "c2", ID: 2}
	for i := range 50 {
		p := keptPrefix(i)
		f.ips.Apply(claimed(ipcache.Spec{Prefix: p, Cluster: c, Source: wire.SourceClusterMesh}))
		if n := len(list[api.IP](t, f, "/v1/ips").Items); n != i+1 {
			t.Fatalf("%d of %d addresses", n, i+1)
		}
		if w := f.get("/v1/ips/" + p.String()); w.Code != http.StatusOK {
			t.Fatalf("%s: %d", p, w.Code)
		}
	}
}
