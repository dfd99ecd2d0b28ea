package summary_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/summary"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestReason: the worst first, clusters with one cause together, and never much.
func TestReason(t *testing.T) {
	t.Parallel()
	lost := func(name string) summary.Problem {
		return summary.Problem{Cluster: name, Kind: api.TroubleLost, Code: codes.ConnectionLost, Cause: codes.ConnectionRefused}
	}
	weak := summary.Problem{Cluster: "oslo", Kind: api.TroubleDegraded, Code: codes.NoHeartbeat}
	well := summary.Problem{Cluster: "accra", Code: codes.AllFollowed}
	refusing := summary.Problem{Cluster: "osaka", Also: summary.Refused}
	failed := summary.Problem{Cluster: "delhi", Kind: api.TroubleFailed, Code: codes.ClusterIDTaken}
	for name, test := range map[string]struct {
		problems []summary.Problem
		want     string
	}{
		"nothing":                           {nil, ""},
		"all is well":                       {[]summary.Problem{well}, ""},
		"the cause, and not what it causes": {[]summary.Problem{well, lost("tokyo")}, "nothing listens at an endpoint (tokyo)"},
		"an unknown cause":                  {[]summary.Problem{{Cluster: "tokyo", Kind: api.TroubleLost, Code: codes.ConnectionLost}}, "the connection is lost (tokyo)"},
		"an unknown code":                   {[]summary.Problem{{Cluster: "tokyo", Kind: api.TroubleLost, Code: "MESH-9999"}}, "the connection is lost (tokyo)"},
		"not confirmed":                     {[]summary.Problem{{Cluster: "paris", Kind: api.TroubleStale}}, "not confirmed for too long (paris)"},
		"of several clusters":               {[]summary.Problem{lost("a"), lost("b"), lost("c"), lost("d"), lost("e")}, "nothing listens at an endpoint (a, b, c and 2 more)"},
		"the worst first":                   {[]summary.Problem{refusing, weak, lost("tokyo"), failed}, "another cluster has the cluster ID (delhi); nothing listens at an endpoint (tokyo); the cluster's heartbeat is missing (oslo); and 1 more"},
		"of a ready cluster":                {[]summary.Problem{well, refusing}, "entries are refused (osaka)"},
		"an urgent notice":                  {[]summary.Problem{{Cluster: "osaka", Also: summary.Urgent(codes.EtcdFull)}, {Cluster: "oslo", Also: summary.Urgent(codes.ServerRelease)}}, "the cluster's etcd has no space left (osaka)"},
		"conflicts":                         {[]summary.Problem{well, summary.Conflicts(0), summary.Conflicts(2)}, "clusters disagree (2 conflicts)"},
		"the first attempt":                 {[]summary.Problem{{Cluster: "tokyo", Kind: api.TroubleConnecting, Code: codes.NotConnectedYet}}, "not connected yet (tokyo)"},
		"an ignored file":                   {[]summary.Problem{well, summary.Ignored(0), summary.Ignored(1)}, "the agent ignores a file of the mesh directory (1 file)"},
		"ignored files":                     {[]summary.Problem{summary.Ignored(2)}, "the agent ignores files of the mesh directory (2 files)"},
		"one conflict":                      {[]summary.Problem{summary.Conflicts(1)}, "clusters disagree (1 conflict)"},
		"of the own kvstore":                {[]summary.Problem{summary.OwnKVStore(codes.EtcdAlarm)}, "etcd has raised an alarm (the own kvstore)"},
	} {
		if got := summary.Reason(test.problems); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestCountsAreDisjoint: each cluster counts once, for all kinds.
func TestCountsAreDisjoint(t *testing.T) {
	t.Parallel()
	all := []summary.Problem{{}, {Also: summary.NotUsed}}
	for _, kind := range summary.Kinds() {
		all = append(all, summary.Problem{Kind: kind})
	}
	sum := 0
	for _, n := range summary.Counts(all) {
		sum += n
	}
	if got := summary.Counts(all)[summary.Ready]; sum != len(all) || got != 2 {
		t.Errorf("%v: sum %d of %d, ready %d", summary.Counts(all), sum, len(all), got)
	}
	for _, p := range all[2:] {
		if p.Kind.Remedy() == "" {
			t.Errorf("%s has no remedy", p.Kind)
		}
	}
}

// part is a cluster's part in a service, with n backends, of which the first is not usable if one is given as down.
func part(cluster string, n int, change func(*services.Service)) *services.Service {
	p := &services.Service{Cluster: cluster, Namespace: "default", Shared: true, Source: wire.SourceClusterMesh}
	for i := range n {
		p.Backends = append(p.Backends, services.Backend{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})})
	}
	if change != nil {
		change(p)
	}
	return p
}

func service(name string, parts ...*services.Service) *services.Global {
	for _, p := range parts {
		p.Name = name
	}
	return services.Merge(parts)
}

func TestImpact(t *testing.T) {
	t.Parallel()
	all := []*services.Global{
		service("a", part("cairo", 2, nil)),
		service("b", part("cairo", 1, nil), part("lima", 1, nil)),
		service("c", part("cairo", 3, nil), part("tokyo", 5, nil)),
		service("d", part("tokyo", 4, nil)),
		service("e", part("cairo", 7, func(p *services.Service) { p.Shared = false }), part("tokyo", 1, nil)),
		service("f", part("cairo", 2, func(p *services.Service) { p.Use = services.Withheld })),
		service("g", part("home", 2, func(p *services.Service) { p.Source = wire.SourceLocal }), part("cairo", 0, nil)),
	}
	got := summary.ImpactOf([]string{"cairo", "lima"}, slices.Values(all))
	want := &api.Impact{
		Clusters: []string{"cairo", "lima"},
		Loss: api.Loss{
			Only:   api.Losing{Services: 3, Names: []string{"default/a", "default/b", "default/f"}, Backends: 6, Of: 6},
			Partly: api.Losing{Services: 1, Names: []string{"default/c"}, Backends: 3, Of: 8},
		},
		Each: []api.ClusterLoss{
			{Cluster: "cairo", Loss: api.Loss{
				Only:   api.Losing{Services: 2, Names: []string{"default/a", "default/f"}, Backends: 4, Of: 4},
				Partly: api.Losing{Services: 2, Names: []string{"default/b", "default/c"}, Backends: 4, Of: 10},
			}},
			{Cluster: "lima", Loss: api.Loss{Only: api.Losing{Names: []string{}}, Partly: api.Losing{Services: 1, Names: []string{"default/b"}, Backends: 1, Of: 2}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := summary.ImpactOf(nil, slices.Values(all)); got != nil || got.OfCluster("cairo") != nil {
		t.Errorf("without such clusters: %v", got)
	}
	if got := got.OfCluster("lima"); got == nil || got.Partly.Services != 1 {
		t.Errorf("of one cluster: %v", got)
	}
}

// TestWhoAffectsServices: what a cluster has that answers is still there.
func TestWhoAffectsServices(t *testing.T) {
	t.Parallel()
	var all []summary.Problem
	for _, kind := range append(summary.Kinds(), "") {
		all = append(all, summary.Problem{Cluster: string(kind), Kind: kind})
	}
	if got, want := strings.Join(summary.Affecting(all), " "), "failed connecting lost stale"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkImpact: 20,000 services of 254 clusters, all of which are lost.
func BenchmarkImpact(b *testing.B) {
	var clusters []string
	for i := range 254 {
		clusters = append(clusters, fmt.Sprintf("cluster%03d", i))
	}
	var all []*services.Global
	for i := range 20000 {
		var parts []*services.Service
		for j := range 4 {
			parts = append(parts, part(clusters[(i+j*61)%len(clusters)], 4, nil))
		}
		all = append(all, service(fmt.Sprint("s", i), parts...))
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := summary.ImpactOf(clusters, slices.Values(all)); got.Only.Services != len(all) {
			b.Fatal(got.Only)
		}
	}
}
