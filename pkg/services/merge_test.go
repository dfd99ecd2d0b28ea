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

func withheld(s *Service) *Service { return standingAt(s, Withheld) }

func standingAt(s *Service, to Standing) *Service {
	s.Standing = to
	return s
}

// view is a global service as a user sees it.
type view struct {
	Shared   bool
	Affinity string
	Reasons  []string
	Backends []string // "cluster address", and whether it stands by
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

// short leaves of the reasons what a part brings: why it stands by is for a test
// of its own.
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
			[]*Service{standingAt(svc("c2", true, "10.0.0.1"), Demoted), svc("c3", true, "10.0.0.2")},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; standing by: c2 is demoted because it is in doubt, and another cluster has a usable backend",
				"shared by c3 with 1 backend",
			}, []string{"c2 10.0.0.1 stands by", "c3 10.0.0.2"}},
		},
		"demoted ones are used where nobody else has any": {
			[]*Service{standingAt(svc("c2", true, "10.0.0.1"), Demoted), svc("c3", true), svc("c4", false, "10.0.0.2")},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; c2 is demoted because it is in doubt, and no other cluster has a usable backend: its are used",
				"shared by c3 with no backends",
				"not shared: c4 publishes it with shared=false, so its 1 backend is not used",
			}, []string{"c2 10.0.0.1"}},
		},
		"withdrawn ones are gone while another cluster has a usable one": {
			[]*Service{standingAt(svc("c2", true, "10.0.0.1"), Withdrawn), standingAt(svc("c3", true, "10.0.0.2"), Demoted)},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; withdrawn because c2 was in doubt for too long, and another cluster has a usable backend",
				"shared by c3 with 1 backend; c3 is demoted because it is in doubt, and no other cluster has a usable backend: its are used",
			}, []string{"c3 10.0.0.2"}},
		},
		"withdrawn ones stay where nobody else has any": {
			[]*Service{standingAt(svc("c2", true, "10.0.0.1"), Withdrawn), withheld(svc("c3", true, "10.0.0.2"))},
			&view{true, "none", []string{
				"shared by c2 with 1 backend; c2 is withdrawn because it was in doubt for too long, and no other cluster has a usable backend: its are used",
				"shared by c3 with 1 backend; withheld because c3 has not answered for too long",
			}, []string{"c2 10.0.0.1"}},
		},
		"the own cluster's are another cluster's, too": {
			[]*Service{local(svc("c1", true, "10.0.0.3"), wire.AffinityRemote), standingAt(svc("c2", true, "10.0.0.1"), Demoted)},
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
		s.Standing = rapid.SampledFrom([]Standing{Full, Full, Full, Demoted, Withdrawn, Withheld}).Draw(t, "standing")
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
	counts := naiveStanding(byCluster)
	selected := naiveSelection(byCluster, counts)
	for _, p := range byCluster {
		reason := brings(p)
		if p.Sliced {
			reason += ", known from its endpoint slices alone"
		}
		v.Reasons = append(v.Reasons, reason)
		v.Shared = v.Shared || p.Shared
		if p.Cluster == "c" && (p.Shared || p.IncludeExternal) && p.Affinity != "" {
			v.Affinity = string(p.Affinity)
		}
		if !p.Shared && p.Cluster != "c" {
			continue
		}
		exists = true
		if p.Standing == Withheld || p.Standing == Withdrawn && !counts(p) {
			continue
		}
		for _, b := range p.Backends {
			v.Backends = append(v.Backends, backendText(p, b, counts(p) && selected[p.Cluster == "c"]))
		}
	}
	if !exists {
		return nil
	}
	return v
}

// naiveStanding tells who may get traffic: those of full standing; where these
// have nothing usable those that are demoted, too; and where nobody has those
// that are withdrawn, too.
func naiveStanding(parts []*Service) func(*Service) bool {
	usable := map[Standing]bool{}
	for _, p := range parts {
		for _, b := range p.Backends {
			if (p.Shared || p.Cluster == "c") && (b.Ready() || b.Serving()) {
				usable[p.Standing] = true
			}
		}
	}
	return func(p *Service) bool {
		switch p.Standing {
		case Full:
			return true
		case Demoted:
			return !usable[Full]
		case Withdrawn:
			return !usable[Full] && !usable[Demoted]
		default:
			return false
		}
	}
}

// naiveSelection tells for the local backends (true) and for those of the
// others (false) whether they get traffic; "c" is the local cluster.
func naiveSelection(parts []*Service, counts func(*Service) bool) map[bool]bool {
	var local *Service
	active, healthy := map[bool]int{}, map[bool]int{}
	shared := false
	for _, p := range parts {
		if p.Cluster == "c" {
			local = p
		}
		shared = shared || p.Shared
		if !counts(p) || !p.Shared && p.Cluster != "c" {
			continue
		}
		for _, b := range p.Backends {
			if !b.Ready() && !b.Serving() {
				continue
			}
			healthy[p.Cluster == "c"]++
			if !b.Terminating() {
				active[p.Cluster == "c"]++
			}
		}
	}
	switch {
	case local == nil:
		return map[bool]bool{true: true, false: true}
	case !local.Shared && !local.IncludeExternal, !shared:
		return map[bool]bool{true: true, false: false}
	case local.Affinity == wire.AffinityLocal:
		return map[bool]bool{true: true, false: active[true] == 0 && healthy[false] > 0}
	case local.Affinity == wire.AffinityRemote:
		return map[bool]bool{false: true, true: healthy[false] == 0 && healthy[true] > 0}
	}
	return map[bool]bool{true: true, false: true}
}

// takenByPolicy compares a service with what it is without demoted and withdrawn
// clusters: nothing may lack of which there is no more.
func takenByPolicy(parts []*Service) string {
	without := make([]*Service, len(parts))
	for i, p := range parts {
		one := *p
		if one.Standing != Withheld {
			one.Standing = Full
		}
		without[i] = &one
	}
	with, full := Merge(parts), Merge(without)
	if with == nil {
		return ""
	}
	for what, n := range map[string]func(*Global) int{
		"backends": (*Global).NumBackends,
		"usable backends": func(g *Global) int {
			return countOf(g, func(_ *Service, b Backend) bool { return b.Usable() })
		},
		"usable backends that get traffic": func(g *Global) int {
			s := g.Selection()
			return countOf(g, func(p *Service, b Backend) bool { return b.Usable() && s.Selects(p) })
		},
	} {
		if n(full) > 0 && n(with) == 0 {
			return fmt.Sprintf("the policy took the last of %d %s", n(full), what)
		}
	}
	return ""
}

func countOf(g *Global, is func(*Service, Backend) bool) (n int) {
	for p, b := range g.Backends() {
		if is(p, b) {
			n++
		}
	}
	return n
}

func TestMergeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfNDistinct(rapid.Custom(drawService), 0, 4, func(s *Service) string { return s.Cluster }).Draw(t, "parts")
		want := naive(parts)
		got := Merge(parts)
		if diff := cmp.Diff(want, viewOf(got).short()); diff != "" {
			t.Fatalf("differs from the model: %s", diff)
		}
		other := Merge(rapid.Permutation(parts).Draw(t, "order"))
		if diff := cmp.Diff(viewOf(got), viewOf(other)); diff != "" {
			t.Fatalf("depends on the order: %s", diff)
		}
		if lost := takenByPolicy(parts); lost != "" {
			t.Fatal(lost)
		}
		if len(parts) == 0 {
			return
		}
		gone := rapid.SampledFrom(parts).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(parts), func(s *Service) bool { return s == gone })
		if diff := cmp.Diff(naive(rest), viewOf(Merge(rest)).short()); diff != "" {
			t.Fatalf("without %s: %s", gone.Cluster, diff)
		}
	})
}
