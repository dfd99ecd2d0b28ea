package services

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// svc makes the service ns/svc of a cluster with backends at these addresses.
func svc(cluster string, shared bool, ips ...string) *Service {
	s := &Service{Cluster: cluster, Namespace: "ns", Name: "svc", Shared: shared, Source: wire.SourceClusterMesh}
	for _, a := range ips {
		s.Backends = append(s.Backends, Backend{IP: ip(a)})
	}
	return s
}

func local(s *Service, affinity wire.Affinity) *Service {
	s.Source, s.Affinity = wire.SourceKubernetes, affinity
	return s
}

// view is a global service as a user sees it.
type view struct {
	Shared   bool
	Affinity string
	Reasons  []string
	Backends []string // "cluster address"
}

func viewOf(g *Global) *view {
	if g == nil {
		return nil
	}
	v := &view{Shared: g.Shared(), Affinity: g.Affinity()}
	for _, p := range g.Parts {
		v.Reasons = append(v.Reasons, g.Reason(p))
	}
	for p, b := range g.Backends() {
		v.Backends = append(v.Backends, fmt.Sprintf("%s %s", p.Cluster, b.IP))
	}
	return v
}

func TestMerge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parts []*Service
		want  *view
	}{
		"nothing": {nil, nil},
		"a shared service of one cluster": {
			[]*Service{svc("c2", true, "10.0.0.1")},
			&view{true, "none", []string{"shared by c2 with 1 backend"}, []string{"c2 10.0.0.1"}},
		},
		"a shared service without backends exists": {
			[]*Service{svc("c2", true)},
			&view{true, "none", []string{"shared by c2 with no backends"}, nil},
		},
		"a service that nobody shares does not": {
			[]*Service{svc("c2", false, "10.0.0.1"), svc("c3", false)},
			nil,
		},
		"one that is not shared is a part without backends": {
			[]*Service{svc("c3", false, "10.0.0.2", "10.0.0.3"), svc("c4", false), svc("c2", true, "10.0.0.1")},
			&view{true, "none", []string{
				"shared by c2 with 1 backend",
				"not shared: c3 publishes it with shared=false, so its 2 backends are not used",
				"not shared: c4 publishes it with shared=false",
			}, []string{"c2 10.0.0.1"}},
		},
		"parts are sorted by cluster": {
			[]*Service{svc("b", true), svc("a-b", true), svc("a", true)},
			&view{true, "none", []string{
				"shared by a with no backends", "shared by a-b with no backends", "shared by b with no backends",
			}, nil},
		},
		"one address in two clusters is two backends": {
			[]*Service{svc("c3", true, "10.0.0.1"), svc("c2", true, "10.0.0.1", "10.0.0.2")},
			&view{true, "none", []string{"shared by c2 with 2 backends", "shared by c3 with 1 backend"}, []string{"c2 10.0.0.1", "c2 10.0.0.2", "c3 10.0.0.1"}},
		},
		"a local service that nobody shares exists, with its backends": {
			[]*Service{local(svc("c1", false, "10.0.0.1"), wire.AffinityNone)},
			&view{false, "none", []string{"the local service of c1 with 1 backend, not shared with other clusters"}, []string{"c1 10.0.0.1"}},
		},
		"the local service's affinity counts": {
			[]*Service{svc("c2", true), local(svc("c1", true, "10.0.0.1"), wire.AffinityRemote)},
			&view{true, "remote", []string{"the local service of c1 with 1 backend, shared with other clusters", "shared by c2 with no backends"}, []string{"c1 10.0.0.1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := slices.Clone(tc.parts)
			g := Merge(tc.parts)
			if diff := cmp.Diff(tc.want, viewOf(g)); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(given, tc.parts) {
				t.Error("the caller's slice was changed")
			}
			if g != nil && (g.FullName() != "ns/svc" || g.NumBackends() != len(tc.want.Backends)) {
				t.Errorf("%s with %d backends", g.FullName(), g.NumBackends())
			}
		})
	}
}

func TestBackendsMayBeLeftEarly(t *testing.T) {
	t.Parallel()
	g := Merge([]*Service{svc("c2", true, "10.0.0.1", "10.0.0.2"), svc("c3", true, "10.0.0.3")})
	for p, b := range g.Backends() {
		if p.Cluster != "c2" || b.IP != ip("10.0.0.1") {
			t.Errorf("began with %s %s", p.Cluster, b.IP)
		}
		break
	}
}

func drawService(t *rapid.T) *Service {
	s := &Service{
		Cluster:   rapid.SampledFrom([]string{"a", "a-b", "b", "c"}).Draw(t, "cluster"),
		Namespace: "ns",
		Name:      rapid.SampledFrom([]string{"x", "y", "xy"}).Draw(t, "name"),
		Shared:    rapid.Bool().Draw(t, "shared"),
		Source:    wire.SourceClusterMesh,
	}
	if s.Cluster == "c" {
		s.Source = wire.SourceLocal
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "backends") {
		s.Backends = append(s.Backends, Backend{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})})
	}
	return s
}

// naive is the rule as one would read it aloud.
func naive(parts []*Service) *view {
	v := &view{Affinity: "none"}
	exists := false
	byCluster := slices.SortedFunc(slices.Values(parts), func(a, b *Service) int {
		if a.Cluster < b.Cluster {
			return -1
		}
		return 1
	})
	for _, p := range byCluster {
		v.Reasons = append(v.Reasons, (&Global{}).Reason(p))
		v.Shared = v.Shared || p.Shared
		if !p.Shared && p.Cluster != "c" {
			continue
		}
		exists = true
		for _, b := range p.Backends {
			v.Backends = append(v.Backends, fmt.Sprintf("%s %s", p.Cluster, b.IP))
		}
	}
	if !exists {
		return nil
	}
	return v
}

func TestMergeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfNDistinct(rapid.Custom(drawService), 0, 4, func(s *Service) string { return s.Cluster }).Draw(t, "parts")
		want := naive(parts)
		got := Merge(parts)
		if diff := cmp.Diff(want, viewOf(got)); diff != "" {
			t.Fatalf("differs from the model: %s", diff)
		}
		other := Merge(rapid.Permutation(parts).Draw(t, "order"))
		if diff := cmp.Diff(viewOf(got), viewOf(other)); diff != "" {
			t.Fatalf("depends on the order: %s", diff)
		}
		if len(parts) == 0 {
			return
		}
		gone := rapid.SampledFrom(parts).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(parts), func(s *Service) bool { return s == gone })
		if diff := cmp.Diff(naive(rest), viewOf(Merge(rest))); diff != "" {
			t.Fatalf("without %s: %s", gone.Cluster, diff)
		}
	})
}
