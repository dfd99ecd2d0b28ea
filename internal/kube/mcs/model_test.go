package mcs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// said is what exports say together: fields of the import as texts, and conflicts as "REASON WINNER DISSENTERS".
type said struct {
	Type, Affinity, Families, Internal, Distribution string
	Timeout                                          int32 // seconds; 0 without an affinity
	Ports, Conflicts, Clusters                       []string
	Labels, Annotations                              map[string]string
}

// model is the table of mcs.md B, row by row, in another form than the code: ranks and pairs instead of
// sorting and sets.
func model(exports []*services.Export, own, winner string) (s said) {
	older := func(a, b *services.Export) bool {
		for _, first := range []string{own, winner} {
			if (a.Cluster == first) != (b.Cluster == first) {
				return a.Cluster == first
			}
		}
		return a.Created.Before(b.Created) || a.Created.Equal(b.Created) && a.Cluster < b.Cluster
	}
	byAge := make([]*services.Export, len(exports))
	for _, e := range exports {
		rank := 0
		for _, o := range exports {
			if older(o, e) {
				rank++
			}
		}
		byAge[rank] = e
		s.Clusters = append(s.Clusters, e.Cluster)
	}
	slices.Sort(s.Clusters)
	oldest := byAge[0]
	d := oldest.Details
	s.Type, s.Affinity, s.Internal, s.Distribution = oldest.Type, oldest.Affinity, d.InternalTraffic, d.TrafficDistribution
	if s.Affinity == "ClientIP" {
		s.Timeout = int32(max(1, oldest.Timeout/time.Second)) // the least that Kubernetes takes
	}
	s.Labels, s.Annotations = modelTexts(d.Labels, true), modelTexts(d.Annotations, false)
	s.Ports = modelPorts(byAge)
	conflict := func(reason string, winner *services.Export, differs func(e *services.Export) bool) {
		n := 0
		for _, e := range exports {
			if differs(e) {
				n++
			}
		}
		if n > 0 {
			s.Conflicts = append(s.Conflicts, fmt.Sprint(reason, " ", winner.Cluster, " ", n))
		}
	}
	conflict("PortConflict", oldest, func(e *services.Export) bool { return portSet(e) != portSet(oldest) })
	families, decided, without := modelFamilies(byAge, own)
	s.Families = families
	conflict("IPFamilyConflict", decided, func(e *services.Export) bool { return without[e.Cluster] })
	conflict("TypeConflict", oldest, func(e *services.Export) bool { return e.Type != oldest.Type })
	conflict("SessionAffinityConflict", oldest, func(e *services.Export) bool { return e.Affinity != oldest.Affinity })
	conflict("SessionAffinityConfigConflict", oldest, func(e *services.Export) bool {
		return e.Affinity == "ClientIP" && oldest.Affinity == "ClientIP" && e.Timeout != oldest.Timeout
	})
	conflict("AnnotationsConflict", oldest, func(e *services.Export) bool { return fmt.Sprint(e.Details.Annotations) != fmt.Sprint(d.Annotations) })
	conflict("LabelsConflict", oldest, func(e *services.Export) bool { return fmt.Sprint(e.Details.Labels) != fmt.Sprint(d.Labels) })
	conflict("InternalTrafficPolicyConflict", oldest, func(e *services.Export) bool {
		return (e.Details.InternalTraffic == "Local") != (d.InternalTraffic == "Local") // none is Cluster
	})
	conflict("TrafficDistributionConflict", oldest, func(e *services.Export) bool { return e.Details.TrafficDistribution != d.TrafficDistribution })
	return s
}

// modelTexts are those that objects of Kubernetes can have, of what randomExport makes.
func modelTexts(of map[string]string, labels bool) map[string]string {
	var kept map[string]string
	for _, key := range []string{"a", "b"} {
		if value, has := of[key]; has && (!labels || value != "in valid") {
			kept = with(kept, key, value)
		}
	}
	return kept
}

// modelPorts: of all definitions in the order of age, those that no other one before them that is there clashes with.
func modelPorts(byAge []*services.Export) (texts []string) {
	var there []services.Port
	for _, e := range byAge {
		for _, p := range e.Ports {
			clashes := slices.ContainsFunc(there, func(o services.Port) bool {
				return o.Name == p.Name || o.Protocol == p.Protocol && o.Port == p.Port
			})
			if clashes || p.Name != strings.ToLower(p.Name) || !slices.Contains([]string{"TCP", "UDP", "SCTP"}, p.Protocol) {
				continue
			}
			there = append(there, p)
			texts = append(texts, portText(p, strings.ReplaceAll(e.Details.AppProtocols[p], "no such", "")))
		}
	}
	return texts
}

func portText(p services.Port, speaks string) string {
	return fmt.Sprintf("%s:%d/%s(%s)", p.Name, p.Port, p.Protocol, speaks)
}

func portSet(e *services.Export) string {
	set := make(map[string]bool)
	for _, p := range e.Ports {
		set[portText(p, e.Details.AppProtocols[p])] = true
	}
	return fmt.Sprint(set) // in the order of its keys
}

// modelFamilies: the remaining families of the oldest export that names any, in its order, and the clusters that have
// none of them. Those of the own cluster stay, and a cluster that lacks one has none.
func modelFamilies(byAge []*services.Export, own string) (text string, decided *services.Export, without map[string]bool) {
	without = make(map[string]bool)
	for _, e := range byAge {
		names := strings.Join(e.Details.Families, ",")
		switch {
		case names == "":
		case text == "":
			text, decided = names, e
		case !strings.Contains(names, ",") && decided.Cluster == own && text != names:
			without[e.Cluster] = true
		case !strings.Contains(names, ","): // one family
			if strings.Contains(text, names) {
				text = names
			} else {
				without[e.Cluster] = true
			}
		}
	}
	return text, decided, without
}

// saidOf is the merged form of exports.
func saidOf(m *Merged) said {
	s := said{
		Type: m.Spec.Type, Affinity: string(m.Spec.SessionAffinity), Families: joined(m.Spec.IPFamilies), Clusters: m.Clusters, Labels: m.Labels, Annotations: m.Annotations,
		Internal: value((*string)(m.Spec.InternalTrafficPolicy)), Distribution: value(m.Spec.TrafficDistribution),
	}
	if c := m.Spec.SessionAffinityConfig; c != nil {
		s.Timeout = value(c.ClientIP.TimeoutSeconds)
	}
	for _, p := range m.Spec.Ports {
		s.Ports = append(s.Ports, portText(services.Port{Name: p.Name, Protocol: string(p.Protocol), Port: uint16(p.Port)}, value(p.AppProtocol)))
	}
	for _, c := range m.Conflicts {
		s.Conflicts = append(s.Conflicts, fmt.Sprint(c.Reason, " ", c.Winner, " ", c.Dissenters))
	}
	return s
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// randomExport is one of shop/cart, now and then with what no object of Kubernetes has.
func randomExport(rng *rand.Rand, cluster string) *services.Export {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	texts := func() map[string]string {
		all := make(map[string]string)
		for range rng.IntN(3) {
			all[pick("a", "b", "kubernetes.io/x")] = pick("1", "2", "in valid")
		}
		return all
	}
	return export(cluster, rng.IntN(4), func(w *wire.ServiceExport) {
		w.Type = pick(wire.ServiceExportClusterSetIP, wire.ServiceExportClusterSetIP, wire.ServiceExportHeadless)
		w.Ports = nil
		for range rng.IntN(4) {
			p := wire.ServiceExportPort{Name: pick("", "a", "b", "c", "D"), Port: int32(rng.IntN(4)), Protocol: pick("", "TCP", "UDP", "IGMP")}
			if said := pick("", "http", "no such"); rng.IntN(2) == 0 {
				p.AppProtocol = &said
			}
			w.Ports = append(w.Ports, p)
		}
		w.IPFamilies = strings.Fields(pick("", "IPv4", "IPv6", "IPv4 IPv6", "IPv6 IPv4"))
		if rng.IntN(3) == 0 {
			sticky(int32(rng.IntN(3)))(w)
		}
		if rng.IntN(2) == 0 {
			internal(pick(wire.InternalTrafficCluster, wire.InternalTrafficLocal))(w)
		}
		if rng.IntN(2) == 0 {
			distribution(pick(wire.PreferClose, wire.PreferSameNode))(w)
		}
		w.Labels, w.Annotations = texts(), texts()
	})
}

// outcome is what a cluster has of an import after a plan.
type outcome struct {
	families, derived, ips, ready, conflict string
	recreate                                bool
}

// modelObjects is what a cluster should have, by what the exports say together and what it has until then.
func modelObjects(s said, f *Facts) (h outcome) {
	names := s.Families
	if names == "" {
		names = strings.Join(f.Families, ",")
	}
	var ips []string
	for family := range strings.SplitSeq(names, ",") {
		if slices.Contains(f.Families, family) {
			h.families += "," + family
			ips = append(ips, addressOf(family))
		}
	}
	h.families = strings.TrimPrefix(h.families, ",")
	is := "" // the type of the derived Service that there is
	switch {
	case f.Derived != nil && f.Derived.Spec.ClusterIP == "None":
		is = wire.ServiceExportHeadless
	case f.Derived != nil:
		is = wire.ServiceExportClusterSetIP
	}
	switch {
	case h.families == "":
		h.ready = "False IPFamilyNotSupported"
	case s.Type != wire.ServiceExportHeadless && len(s.Ports) == 0:
		h.ready = "False NoPorts"
	case is != s.Type:
		h.derived, h.ready, h.recreate = s.Type, "False Pending", is != ""
	default:
		h.derived, h.ready = s.Type, "True Ready"
		if is != wire.ServiceExportHeadless {
			h.ips = strings.Join(ips, ",")
		}
	}
	if f.Export != nil {
		h.conflict = "False NoConflicts"
		for i, c := range s.Conflicts {
			h.conflict = map[bool]string{true: "True ", false: h.conflict + ","}[i == 0] + strings.Fields(c)[0]
		}
	}
	return h
}

func addressOf(family string) string {
	if family == services.IPv4 {
		return "10.0.0.1"
	}
	return "fd00::1"
}

// outcomeOf is the outcome of a plan.
func outcomeOf(w Wanted) outcome {
	h := outcome{
		families: w.Import.Annotations[AnnotationFamilies], ips: strings.Join(w.Import.Spec.IPs, ","), recreate: w.Recreate,
		ready: conditionOf(w.Import.Status.Conditions, ConditionReady), conflict: conditionOf(w.Conditions, ConditionConflict),
	}
	if w.Derived != nil {
		h.derived = map[bool]string{true: wire.ServiceExportHeadless, false: wire.ServiceExportClusterSetIP}[headless(w.Derived)]
	}
	return h
}

// TestMakeEqualsModel changes random exports again and again, and compares what they are together, and
// what a cluster has then, with the model.
func TestMakeEqualsModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	exports, f := make(map[string]*services.Export), facts()
	for n := range 1000 {
		if n%50 == 0 { // the own cluster is another one
			f.Import, f.Derived, f.Families = nil, nil, [][]string{{"IPv4"}, {"IPv6"}, {"IPv4", "IPv6"}, {"IPv6", "IPv4"}}[rng.IntN(4)]
		}
		cluster := fmt.Sprint("c", 1+rng.IntN(5))
		exports[cluster] = randomExport(rng, cluster)
		if rng.IntN(3) == 0 {
			delete(exports, cluster)
		}
		f.Winner = []string{"", "c2", "c3"}[rng.IntN(3)]
		if f.Export = nil; exports["c1"] != nil {
			f.Export = &OwnExport{Service: service()}
		}
		all := slices.Collect(maps.Values(exports)) // in any order
		w := Make("shop", "cart", all, f)
		if len(all) == 0 {
			if w.Import != nil || w.Derived != nil {
				t.Fatalf("seed %d, world %d: nobody exports it, and there is %+v", seed, n, w)
			}
			f.Derived = nil
			continue
		}
		want := model(all, "c1", f.Winner)
		if d := gocmp.Diff(want, saidOf(Merge(all, f.Precedence()))); d != "" {
			t.Fatalf("seed %d, world %d (-model +merged):\n%s", seed, n, d)
		}
		if got, want := outcomeOf(w), modelObjects(want, &f); got != want {
			t.Fatalf("seed %d, world %d: a cluster has\n%+v, by the model\n%+v", seed, n, got, want)
		}
		f.Import, f.Derived = w.Import, served(w.Derived, f.Families)
	}
}

// served is a derived Service with an address of each family of its cluster, if it has any.
func served(derived *corev1.Service, families []string) *corev1.Service {
	switch {
	case derived == nil:
		return nil
	case headless(derived):
		return serve(derived, corev1.ClusterIPNone)
	}
	var ips []string
	for _, family := range families {
		ips = append(ips, addressOf(family))
	}
	return serve(derived, ips...)
}
