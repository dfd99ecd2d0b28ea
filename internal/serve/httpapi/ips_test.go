package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// claim gives addresses of both families an identity.
func (f *fixture) claim(identity uint32, addrs ...netip.Addr) {
	c := &ipcache.Claimant{Name: "c2", ID: 2}
	var ops []ipcache.Op
	for _, a := range addrs {
		ops = append(ops, ipcache.Op{New: ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.PrefixFrom(a, a.BitLen()), Cluster: c, Source: wire.SourceClusterMesh, Identity: identity,
		})})
	}
	f.ips.Apply(ops)
}

func (f *fixture) label(id uint32, labels string) {
	f.identities.Apply([]store.Change[identities.Identity]{{Name: fmt.Sprint(id), New: &identities.Identity{
		ID: id, Cluster: "c2", ClusterID: 2, Labels: identities.NewLabels(wire.ParseLabels(labels)),
	}}})
}

// TestIPsOfAnIdentityAreFoundByAnIndex: a request for the addresses of one identity, or of labels, does not look at the
// other addresses.
func TestIPsOfAnIdentityAreFoundByAnIndex(t *testing.T) { // not parallel: it counts allocations
	f := newFixture(t)
	f.fillIPs(20_000)
	f.label(131072, "k8s:app=many;")
	f.label(131073, "k8s:app=web;")
	f.claim(131073, ip("10.77.0.1"), ip("10.77.0.2"))
	// Each address that is looked at takes several allocations: its prefix is written
	// as text, and the labels of its identity are gathered.
	if got := names(list[api.IP](t, f, "/v1/ips?labels=app%3Dweb").Items, func(i api.IP) string { return i.Prefix }); !slices.Equal(got, []string{"10.77.0.1/32", "10.77.0.2/32"}) {
		t.Errorf("the addresses are %v", got)
	}
	allocated := testing.AllocsPerRun(3, func() {
		f.Handler().ServeHTTP(&discard{header: make(http.Header)}, request(http.MethodGet, "/v1/ips?labels=app%3Dweb"))
	})
	if allocated > 5000 {
		t.Errorf("to list 2 of 20,002 addresses takes %.0f allocations", allocated)
	}
}

// TestIPsByIdentityInPages compares the results of the index with those of the whole list: by pages, within networks,
// with labels, while addresses change.
func TestIPsByIdentityInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := []uint32{131072, 131073, 131074, wire.IdentityRemoteNode}
	for i, app := range []string{"web", "web", "db"} {
		f.label(ids[i], "k8s:app="+app+";")
	}
	labels := map[string][]uint32{"app=web": ids[:2], "app": ids[:3], "!app": ids[3:], "reserved:remote-node": ids[3:], "app=none": nil}
	for turn := range 4 {
		for i := range 120 {
			n := byte(i * (turn + 1))
			f.claim(ids[(i+turn)%4], netip.AddrFrom4([4]byte{10, n % 3, 0, n}), netip.AddrFrom16([16]byte{0xfd, n % 3, 15: n}))
		}
		all := list[api.IP](t, f, "/v1/ips").Items
		expect := func(query string, within netip.Prefix, want []uint32) {
			t.Helper()
			var expected, got []string
			for _, i := range all {
				if slices.Contains(want, i.Identity) && (!within.IsValid() || within.Contains(netip.MustParsePrefix(i.Prefix).Addr())) {
					expected = append(expected, i.Prefix)
				}
			}
			if within.IsValid() {
				query += "&prefix=" + within.String()
			}
			for cursor := ""; ; {
				page := list[api.IP](t, f, fmt.Sprintf("/v1/ips?%s&limit=7&cursor=%s", query, cursor))
				got = append(got, names(page.Items, func(i api.IP) string { return i.Prefix })...)
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if !slices.Equal(got, expected) {
				t.Errorf("turn %d, %s: %v, want %v", turn, query, got, expected)
			}
		}
		for _, within := range []netip.Prefix{{}, netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/16")} {
			for _, id := range ids {
				expect(fmt.Sprint("identity=", id), within, []uint32{id})
			}
			for text, want := range labels {
				expect("labels="+text, within, want)
			}
		}
	}
}

// BenchmarkIPsOfAnIdentity lists the 200 of a million addresses that have one
// identity. The floor is the index of the cache.
func BenchmarkIPsOfAnIdentity(b *testing.B) {
	f := newFixture(b)
	f.fillIPs(1_000_000)
	var addrs []netip.Addr
	for i := range 200 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 200, 0, byte(i)}))
	}
	f.claim(131073, addrs...)
	v := f.View.Snapshot(b.Context())
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if found, _ := f.View.WithIdentities(v, []uint32{131073}, maxIndexed); len(found) != len(addrs) {
				b.Fatal("not found")
			}
		}
	})
	b.Run("answer", func(b *testing.B) {
		before := cpuTime()
		for b.Loop() {
			f.Handler().ServeHTTP(&discard{header: make(http.Header)}, request(http.MethodGet, "/v1/ips?identity=131073"))
		}
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "CPU-ns/op")
	})
}

// TestBackendsFromBothFormats: endpoint slices add backends, some backends get the traffic, and those of a withheld
// cluster are absent.
func TestBackendsFromBothFormats(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	yes, no, node := true, false, "n7"
	f.services.Apply(created(
		&services.Service{
			Cluster: "c1", ClusterID: 1, Namespace: "ns", Name: "web", Source: wire.SourceKVStore, Shared: true, IncludeExternal: true, Affinity: wire.AffinityLocal,
			Backends: []services.Backend{{IP: ip("10.1.0.1")}},
		},
		&services.Service{
			Cluster: "c2", ClusterID: 2, Namespace: "ns", Name: "web", Source: wire.SourceClusterMesh, Shared: true,
			Backends: []services.Backend{{IP: ip("10.2.0.1")}},
		},
	))
	stopping := &wire.EndpointSlice{
		Cluster: "c1", ClusterID: 1, Namespace: "ns", Name: "web-1", AddressType: wire.AddressTypeIPv4,
		Labels: map[string]string{wire.LabelServiceName: "web"},
		Endpoints: []wire.Endpoint{{
			Addresses: []string{"10.1.0.1"}, NodeName: &node,
			Conditions: wire.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes},
		}},
	}
	get := func() api.Service { return object[api.Service](t, f, "/v1/services/ns/web") }
	found := func() []api.ServiceName { return object[api.Lookup](t, f, "/v1/lookup/10.2.0.1").Services }
	mine := api.Backend{IP: "10.1.0.1", Cluster: "c1", Ports: []api.Port{}, Ready: true, Serving: true, Local: true, Preferred: true, Selected: true}
	theirs := api.Backend{IP: "10.2.0.1", Cluster: "c2", Ports: []api.Port{}, Ready: true, Serving: true}
	if diff := cmp.Diff([]api.Backend{mine, theirs}, get().Backends); diff != "" {
		t.Errorf("an active local backend: %s", diff)
	}
	if reason := get().Clusters[1].Reason; !strings.Contains(reason, "the affinity is local") {
		t.Errorf("the reason is %q", reason)
	}
	f.services.ApplySlices(created(services.SliceFromWire(stopping, wire.SourceKVStore)))
	mine.Node, mine.Ready, mine.Terminating = "n7", false, true
	theirs.Selected = true
	if diff := cmp.Diff([]api.Backend{mine, theirs}, get().Backends); diff != "" {
		t.Errorf("a terminating local backend: %s", diff)
	}
	f.services.Withhold("c2", true)
	if diff := cmp.Diff([]api.Backend{mine}, get().Backends); diff != "" {
		t.Errorf("withheld: %s", diff)
	}
	if reason := get().Clusters[1].Reason; !strings.Contains(reason, "withheld") {
		t.Errorf("the reason is %q", reason)
	}
	if got := found(); len(got) != 0 {
		t.Errorf("a withheld backend is found in %v", got)
	}
	f.services.Withhold("c2", false)
	if got := found(); !slices.Equal(got, []api.ServiceName{{Namespace: "ns", Name: "web"}}) {
		t.Errorf("the backend is found in %v", got)
	}
}
