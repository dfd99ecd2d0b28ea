package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The table of mcs.md B, precedence and fields, and its behaviours 15 to 21.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exports   []*services.Export
		want      string // the type, the ports, the families
		conflicts string
	}{
		"15: one export":                        {[]*services.Export{export("c2", 0)}, "ClusterSetIP http:80 IPv4", ""},
		"15: the oldest counts":                 {[]*services.Export{export("c2", 9, headlessExport), export("c3", 0)}, "ClusterSetIP http:80 IPv4", "TypeConflict"},
		"15: equally old, the name counts":      {[]*services.Export{export("c3", 0), export("c2", 0, headlessExport)}, "Headless http:80 IPv4", "TypeConflict"},
		"16: union of ports":                    {[]*services.Export{export("c2", 1, ports(port("b", 2))), export("c3", 2, ports(port("a", 1)))}, "ClusterSetIP b:2 a:1 IPv4", "PortConflict"},
		"16: a part of the ports":               {[]*services.Export{export("c2", 1), export("c3", 2, ports(port("http", 80), port("more", 81)))}, "ClusterSetIP http:80 more:81 IPv4", "PortConflict"},
		"16: another order":                     {[]*services.Export{export("c2", 1, ports(port("a", 1), port("b", 2))), export("c3", 2, ports(port("b", 2), port("a", 1)))}, "ClusterSetIP a:1 b:2 IPv4", ""},
		"17: a name with two numbers":           {[]*services.Export{export("c2", 1), export("c3", 0, ports(port("http", 8080)))}, "ClusterSetIP http:8080 IPv4", "PortConflict"},
		"a number with two names":               {[]*services.Export{export("c2", 0), export("c3", 1, ports(port("web", 80)))}, "ClusterSetIP http:80 IPv4", "PortConflict"},
		"the empty name counts":                 {[]*services.Export{export("c2", 0, ports(port("", 80))), export("c3", 1, ports(port("", 81)))}, "ClusterSetIP :80 IPv4", "PortConflict"},
		"protocols are apart":                   {[]*services.Export{export("c2", 0), export("c3", 1, ports(wire.ServiceExportPort{Name: "quic", Protocol: "UDP", Port: 80}))}, "ClusterSetIP http:80 quic:80 IPv4", "PortConflict"},
		"what a port speaks":                    {[]*services.Export{export("c2", 0, speaks("kubernetes.io/h2c")), export("c3", 1, speaks("https"))}, "ClusterSetIP http:80(kubernetes.io/h2c) IPv4", "PortConflict"},
		"19: affinity":                          {[]*services.Export{export("c2", 0), export("c3", 1, sticky(60))}, "ClusterSetIP http:80 IPv4", "SessionAffinityConflict"},
		"19: affinity timeout":                  {[]*services.Export{export("c2", 0, sticky(61)), export("c3", 1, sticky(60))}, "ClusterSetIP http:80 IPv4 sticky 61", "SessionAffinityConfigConflict"},
		"19: internal traffic, none is Cluster": {[]*services.Export{export("c2", 0), export("c3", 1, internal("Cluster"))}, "ClusterSetIP http:80 IPv4", ""},
		"19: internal traffic":                  {[]*services.Export{export("c2", 0, internal("Local")), export("c3", 1)}, "ClusterSetIP http:80 IPv4 internal Local", "InternalTrafficPolicyConflict"},
		"19: distribution, none is other":       {[]*services.Export{export("c2", 0), export("c3", 1, distribution("PreferClose"))}, "ClusterSetIP http:80 IPv4", "TrafficDistributionConflict"},
		"20: labels and annotations are not merged": {
			[]*services.Export{export("c2", 1, labels(map[string]string{"a": "1"})), export("c3", 0, labels(map[string]string{"b": "2"}), annotations(map[string]string{"n": "3"}))},
			"ClusterSetIP http:80 IPv4 labels map[b:2] annotations map[n:3]", "AnnotationsConflict,LabelsConflict",
		},
		"21: dual with one narrows":       {[]*services.Export{export("c2", 0, families("IPv6", "IPv4")), export("c3", 1)}, "ClusterSetIP http:80 IPv4", ""},
		"21: the order is the oldest's":   {[]*services.Export{export("c2", 0, families("IPv6", "IPv4")), export("c3", 1, families("IPv4", "IPv6"))}, "ClusterSetIP http:80 IPv6,IPv4", ""},
		"21: nothing in common":           {[]*services.Export{export("c2", 0), export("c3", 1, families("IPv6"))}, "ClusterSetIP http:80 IPv4", "IPFamilyConflict"},
		"21: narrowed, then nothing":      {[]*services.Export{export("c2", 0, families("IPv4", "IPv6")), export("c3", 1), export("c4", 2, families("IPv6"))}, "ClusterSetIP http:80 IPv4", "IPFamilyConflict"},
		"21: who names none, counts none": {[]*services.Export{export("c2", 0, families()), export("c3", 1, families("IPv6"))}, "ClusterSetIP http:80 IPv6", ""},
		"21: unknown families":            {[]*services.Export{export("c2", 0, families("IPv5", "IPv6", "IPv6"))}, "ClusterSetIP http:80 IPv6", ""},
		"every reason, in one order": {
			[]*services.Export{export("c2", 0), export("c3", 1, ports(), families("IPv6"), headlessExport, sticky(1), annotations(map[string]string{"a": ""}), labels(map[string]string{"a": ""}), internal("Local"), distribution("PreferClose"))},
			"ClusterSetIP http:80 IPv4", "PortConflict,IPFamilyConflict,TypeConflict,SessionAffinityConflict,AnnotationsConflict,LabelsConflict,InternalTrafficPolicyConflict,TrafficDistributionConflict",
		},
		"a hostile cluster: names, protocols": {
			[]*services.Export{export("c2", 0, ports(port("UPPER", 1), port(strings.Repeat("x", 64), 2), wire.ServiceExportPort{Name: "icmp", Protocol: "ICMP", Port: 3}, port("ok", 4)))},
			"ClusterSetIP ok:4 IPv4", "",
		},
		"a hostile cluster: labels": {
			[]*services.Export{export("c2", 0, labels(map[string]string{"ok": "1", "bad key": "1", "bad": "a b", "kubernetes.io/service-name": "victim", "service.kubernetes.io/headless": "", LabelWritten: "x", LabelLocalSlice: "x"}))},
			"ClusterSetIP http:80 IPv4 labels map[ok:1]", "",
		},
		"a hostile cluster: annotations": {
			[]*services.Export{export("c2", 0, annotations(map[string]string{"a": "1", "b": strings.Repeat("x", maxAnnotations), "bad key": "", AnnotationFamilies: "IPv6", "kubectl.kubernetes.io/last-applied-configuration": "{}"}))},
			"ClusterSetIP http:80 IPv4 annotations map[a:1]", "",
		},
		"a hostile cluster: timeouts": {[]*services.Export{export("c2", 0, sticky(-5))}, "ClusterSetIP http:80 IPv4 sticky 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Merge(test.exports, Precedence{})
			if got := textOf(m); got != test.want {
				t.Errorf("merged: %q, want %q", got, test.want)
			}
			if got, _ := reasons(m.Conflicts); got != test.conflicts {
				t.Errorf("conflicts: %q, want %q", got, test.conflicts)
			}
		})
	}
	if Merge(nil, Precedence{}) != nil {
		t.Error("of no exports something is merged")
	}
}

func speaks(protocol string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.Ports[0].AppProtocol = &protocol }
}

// textOf is what the tests say of a merged export.
func textOf(m *Merged) string {
	parts := []string{m.Spec.Type}
	for _, p := range m.Spec.Ports {
		text := fmt.Sprintf("%s:%d", p.Name, p.Port)
		if p.AppProtocol != nil {
			text += "(" + *p.AppProtocol + ")"
		}
		parts = append(parts, text)
	}
	parts = append(parts, joined(m.Spec.IPFamilies))
	if c := m.Spec.SessionAffinityConfig; c != nil {
		parts = append(parts, fmt.Sprint("sticky ", *c.ClientIP.TimeoutSeconds))
	}
	if p := m.Spec.InternalTrafficPolicy; p != nil {
		parts = append(parts, "internal "+string(*p))
	}
	if len(m.Labels) > 0 {
		parts = append(parts, fmt.Sprint("labels ", m.Labels))
	}
	if len(m.Annotations) > 0 {
		parts = append(parts, fmt.Sprint("annotations ", m.Annotations))
	}
	return strings.Join(parts, " ")
}

// mcs.md B, condition Conflict: the field, the winner and why, how many disagree, no list of clusters.
func TestWhatAConflictSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exports []*services.Export
		want    string
	}{
		"oldest": {
			[]*services.Export{export("c2", 1), export("c3", 0, headlessExport), export("c4", 2), export("c5", 3, headlessExport)},
			"type: what cluster c3 exports counts, because its export is the oldest, since 2026-01-02T03:04:05Z; 2 of 4 clusters differ",
		},
		"tied": {
			[]*services.Export{export("c2", 0), export("c3", 0, headlessExport)},
			"type: what cluster c2 exports counts, because of the oldest exports, of 2026-01-02T03:04:05Z, its name is the first; 1 of 2 clusters differ",
		},
		"ports": {
			[]*services.Export{export("c2", 0), export("c3", 1, ports())},
			"ports: what cluster c2 exports comes first in the union, because its export is the oldest, since 2026-01-02T03:04:05Z; 1 of 2 clusters differ",
		},
		"two": {
			[]*services.Export{export("c2", 0, sticky(60)), export("c3", 1, sticky(5), headlessExport)},
			"type: what cluster c2 exports counts, because its export is the oldest, since 2026-01-02T03:04:05Z; 1 of 2 clusters differ. " +
				"sessionAffinityConfig: what cluster c2 exports counts, because its export is the oldest, since 2026-01-02T03:04:05Z; 1 of 2 clusters differ",
		},
		"families are decided by the oldest that names some": {
			[]*services.Export{export("c2", 0, families()), export("c3", 1), export("c4", 2, families("IPv6"))},
			"ipFamilies: what cluster c3 exports counts, because its export is the oldest, since 2026-01-02T03:04:06Z; 1 of 3 clusters differ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := reasons(Merge(test.exports, Precedence{}).Conflicts); got != test.want {
				t.Errorf("%q\nwant\n%q", got, test.want)
			}
		})
	}
}

// drawExports draws exports of shop/cart by different clusters.
func drawExports(t *rapid.T) []*services.Export {
	clusters := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c1", "c2", "c3", "c4", "c5"}), 1, 5, rapid.ID).Draw(t, "clusters")
	texts := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "kubernetes.io/x"}), rapid.SampledFrom([]string{"1", "2", "in valid"}), 0, 2)
	var out []*services.Export
	for _, c := range clusters {
		out = append(out, export(c, rapid.IntRange(0, 2).Draw(t, "age"), func(w *wire.ServiceExport) {
			w.Type = rapid.SampledFrom([]string{wire.ServiceExportClusterSetIP, wire.ServiceExportHeadless}).Draw(t, "type")
			w.Ports = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wire.ServiceExportPort {
				p := wire.ServiceExportPort{
					Name: rapid.SampledFrom([]string{"", "a", "b", "C"}).Draw(t, "name"), Port: rapid.Int32Range(0, 3).Draw(t, "number"),
					Protocol: rapid.SampledFrom([]string{"", "TCP", "UDP", "IGMP"}).Draw(t, "protocol"),
				}
				if rapid.Bool().Draw(t, "speaks") {
					said := rapid.SampledFrom([]string{"", "http", "no such"}).Draw(t, "appProtocol")
					p.AppProtocol = &said
				}
				return p
			}), 0, 4).Draw(t, "ports")
			w.IPFamilies = rapid.SliceOfN(rapid.SampledFrom([]string{"IPv4", "IPv6", "other"}), 0, 3).Draw(t, "families")
			if rapid.Bool().Draw(t, "sticky") {
				sticky(rapid.Int32Range(-1, 1).Draw(t, "timeout"))(w)
			}
			w.Labels, w.Annotations = texts.Draw(t, "labels"), texts.Draw(t, "annotations")
		}))
	}
	return out
}

// Behaviour 15: the same result in all clusters, in any order of the exports.
func TestTheOrderOfClustersDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		first := Merge(exports, Precedence{})
		if d := gocmp.Diff(first, Merge(rapid.Permutation(exports).Draw(t, "shuffled"), Precedence{})); d != "" {
			t.Fatal(d)
		}
		for _, cluster := range []string{"c6", "c7"} { // none of which exports
			f := facts()
			f.Cluster, f.Families = cluster, []string{"IPv6"}
			w := Make("shop", "cart", exports, f)
			if d := gocmp.Diff(first.Spec, w.Import.Spec); d != "" { // without addresses yet
				t.Fatalf("in %s: %s", cluster, d)
			}
		}
	})
}

// Properties of every merger, from the words of mcs.md B and not from the code.
func TestWhatIsMergedIsWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		m := Merge(exports, Precedence{})
		oldest := slices.MinFunc(exports, func(a, b *services.Export) int {
			return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Cluster, b.Cluster))
		})
		names, numbers := make(map[string]bool), make(map[string]bool)
		for _, p := range m.Spec.Ports {
			number := fmt.Sprint(p.Protocol, p.Port)
			if names[p.Name] || numbers[number] {
				t.Fatalf("ports are not unique: %v", m.Spec.Ports)
			}
			names[p.Name], numbers[number] = true, true
			defined := slices.ContainsFunc(exports, func(e *services.Export) bool {
				return slices.Contains(e.Ports, services.Port{Name: p.Name, Protocol: string(p.Protocol), Port: uint16(p.Port)})
			})
			if !defined {
				t.Fatalf("nobody exports %v", p)
			}
		}
		for _, e := range exports {
			for _, p := range e.Ports {
				if isValid(p) && !names[p.Name] && !numbers[fmt.Sprint(p.Protocol, p.Port)] {
					t.Fatalf("%v of %s is not there, although nothing is like it: %v", p, e.Cluster, m.Spec.Ports)
				}
			}
		}
		if m.Spec.Type != oldest.Type || string(m.Spec.SessionAffinity) != oldest.Affinity {
			t.Fatalf("the oldest is %+v: %+v", oldest, m.Spec)
		}
		has := func(reasons ...string) bool {
			return slices.ContainsFunc(m.Conflicts, func(c Conflict) bool { return slices.Contains(reasons, c.Reason) })
		}
		// The finding about affinities and the condition are one judgement.
		if has(SessionAffinityConflict, SessionAffinityConfigConflict) != services.AffinitiesDiffer(exports) {
			t.Fatalf("affinities: %v", m.Conflicts)
		}
		if got, want := has(LabelsConflict), slices.ContainsFunc(exports, func(e *services.Export) bool { return !maps.Equal(e.Details.Labels, exports[0].Details.Labels) }); got != want {
			t.Fatalf("labels differ: %v, want %v", got, want)
		}
		if len(m.Clusters) != len(exports) || !slices.IsSorted(m.Clusters) {
			t.Fatalf("clusters: %v", m.Clusters)
		}
	})
}

// A cluster with ports without end does not take the room of older exports.
func TestPortsAreBounded(t *testing.T) {
	t.Parallel()
	var many []wire.ServiceExportPort
	for i := range 5 * MaxPorts {
		many = append(many, port(fmt.Sprint("p", i), int32(1000+i)))
	}
	m := Merge([]*services.Export{export("c2", 1, ports(many...)), export("c3", 0)}, Precedence{})
	if len(m.Spec.Ports) != MaxPorts || m.Spec.Ports[0].Name != "http" {
		t.Errorf("%d ports: %v", len(m.Spec.Ports), m.Spec.Ports[0])
	}
}
