package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// svc returns the service ns/svc of a cluster with backends at these addresses.
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

func withheld(s *Service) *Service { return usedAs(s, Withheld) }

func usedAs(s *Service, to BackendUse) *Service {
	s.Use = to
	return s
}

// view is the part of a global service that a user sees.
type view struct {
	Shared   bool
	Affinity string
	Reasons  []string
	Backends []string // "cluster address", and whether it is on standby
}

func viewOf(g *Global) *view {
	if g == nil {
		return nil
	}
	v := &view{Shared: g.Shared(), Affinity: g.Affinity()}
	for _, p := range g.Parts {
		v.Reasons = append(v.Reasons, g.Reason(p))
	}
	selection := g.Selection()
	for p, b := range g.Backends() {
		v.Backends = append(v.Backends, backendText(p, b, selection.Selects(p)))
	}
	return v
}

func backendText(p *Service, b Backend, selected bool) string {
	text := fmt.Sprintf("%s %s", p.Cluster, b.IP)
	if !selected {
		text += " stands by"
	}
	return text
}

// short reduces each reason to what the part contributes: the reason for a standby has a test of its own.
func (v *view) short() *view {
	if v != nil {
		for i, r := range v.Reasons {
			v.Reasons[i], _, _ = strings.Cut(r, ";")
		}
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
		"a remote part does nothing for a local service that is not global": {
			[]*Service{local(svc("c1", false, "10.0.0.1"), wire.AffinityLocal), svc("c2", true, "10.0.0.2")},
			&view{true, "none", []string{
				"the local service of c1 with 1 backend, not shared with other clusters",
				"shared by c2 with 1 backend; not used: the local service is not global",
			}, []string{"c1 10.0.0.1", "c2 10.0.0.2 stands by"}},
		},
		"a withheld part is listed without its backends": {
			[]*Service{withheld(svc("c2", true, "10.0.0.1")), svc("c3", true, "10.0.0.2"), withheld(svc("c4", false, "10.0.0.2"))},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; withheld because c2 has not answered for too long",
				"shared by c3 with 1 backend",
				"not shared: c4 publishes it with shared=false, so its 1 backend is not used",
			}, []string{"c3 10.0.0.2"}},
		},
		"demoted ones stand by while another cluster has a usable one": {
			[]*Service{usedAs(svc("c2", true, "10.0.0.1"), Demoted), svc("c3", true, "10.0.0.2")},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; standing by: c2 is demoted because it is in doubt, and another cluster has a usable backend",
				"shared by c3 with 1 backend",
			}, []string{"c2 10.0.0.1 stands by", "c3 10.0.0.2"}},
		},
		"demoted ones are used where nobody else has any": {
			[]*Service{usedAs(svc("c2", true, "10.0.0.1"), Demoted), svc("c3", true), svc("c4", false, "10.0.0.2")},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; c2 is demoted because it is in doubt, and no other cluster has a usable backend: its are used",
				"shared by c3 with no backends",
				"not shared: c4 publishes it with shared=false, so its 1 backend is not used",
			}, []string{"c2 10.0.0.1"}},
		},
		"withdrawn ones are gone while another cluster has a usable one": {
			[]*Service{usedAs(svc("c2", true, "10.0.0.1"), Withdrawn), usedAs(svc("c3", true, "10.0.0.2"), Demoted)},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; withdrawn because c2 was in doubt for too long, and another cluster has a usable backend",
				"shared by c3 with 1 backend; c3 is demoted because it is in doubt, and no other cluster has a usable backend: its are used",
			}, []string{"c3 10.0.0.2"}},
		},
		"withdrawn ones stay where nobody else has any": {
			[]*Service{usedAs(svc("c2", true, "10.0.0.1"), Withdrawn), withheld(svc("c3", true, "10.0.0.2"))},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; c2 is withdrawn because it was in doubt for too long, and no other cluster has a usable backend: its are used",
				"shared by c3 with 1 backend; withheld because c3 has not answered for too long",
			}, []string{"c2 10.0.0.1"}},
		},
		"the own cluster's are another cluster's, too": {
			[]*Service{local(svc("c1", true, "10.0.0.3"), wire.AffinityRemote), usedAs(svc("c2", true, "10.0.0.1"), Demoted)},
			&view{true, "remote", []string{
				"the local service of c1 with 1 backend, shared with other clusters",
				"shared by c2 with 1 backend; standing by: c2 is demoted because it is in doubt, and another cluster has a usable backend",
			}, []string{"c1 10.0.0.3", "c2 10.0.0.1 stands by"}},
		},
		"a service of which all is withheld still exists": {
			[]*Service{withheld(svc("c2", true))},
			&view{true, "none", []string{"shared by c2 with no backends; withheld because c2 has not answered for too long"}, nil},
		},
		"a part from slices says so": {
			[]*Service{fromSlices([]*Slice{{Cluster: "c2", Source: wire.SourceClusterMesh, Namespace: "ns", Service: "svc"}})},
			&view{true, "none", []string{"shared by c2 with no backends, known from its endpoint slices alone"}, nil},
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
	if s.Cluster != "c" {
		s.Use = rapid.SampledFrom([]BackendUse{Full, Full, Full, Demoted, Withdrawn, Withheld}).Draw(t, "use")
	}
	s.IncludeExternal = rapid.Bool().Draw(t, "includeExternal")
	s.Affinity = rapid.SampledFrom([]wire.Affinity{wire.AffinityNone, wire.AffinityLocal, wire.AffinityRemote}).Draw(t, "affinity")
	for i := range rapid.IntRange(0, 3).Draw(t, "backends") {
		s.Backends = append(s.Backends, Backend{
			IP:         netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}),
			Conditions: Conditions(rapid.IntRange(0, 7).Draw(t, "conditions")),
		})
	}
	return s
}
