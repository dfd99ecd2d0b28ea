package mcs

import (
	"cmp"
	"maps"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The conditions of the own export, and what an export that is not valid keeps from happening
// (mcs.md B, ServiceExport conditions; behaviours 11, 12).
func TestTheOwnExport(t *testing.T) {
	t.Parallel()
	external := service()
	external.Spec.Type = corev1.ServiceTypeExternalName
	for name, test := range map[string]struct {
		service                *corev1.Service
		namespace              Namespace
		remote                 []*services.Export
		valid, ready, conflict string
		clusters               string // of the import; empty for none
	}{
		"valid":                         {service(), NamespaceGlobal, nil, "True Valid", "True Ready", "False NoConflicts", "c1"},
		"11: no Service":                {nil, NamespaceGlobal, nil, "False NoService", "False Pending", "", ""},
		"11: no Service, a remote":      {nil, NamespaceGlobal, []*services.Export{export("c2", 0)}, "False NoService", "False Pending", "", "c2"},
		"12: ExternalName":              {external, NamespaceGlobal, nil, "False InvalidServiceType", "False Pending", "", ""},
		"12: ExternalName, a remote":    {external, NamespaceGlobal, []*services.Export{export("c2", 0)}, "False InvalidServiceType", "False Pending", "", "c2"},
		"namespace not global":          {service(), NamespaceNotGlobal, nil, "False NamespaceNotGlobal", "False Pending", "", ""},
		"namespace not global, remote":  {service(), NamespaceNotGlobal, []*services.Export{export("c2", 0)}, "False NamespaceNotGlobal", "False Pending", "", "c2"},
		"16: a conflict, own is older":  {service(), NamespaceGlobal, []*services.Export{export("c2", 9, headlessExport)}, "True Valid", "True Ready", "True TypeConflict", "c1 c2"},
		"16: a conflict, own is newer":  {service(), NamespaceGlobal, []*services.Export{export("c2", -9, headlessExport)}, "True Valid", "True Ready", "True TypeConflict", "c1 c2"},
		"a conflict of others than own": {service(), NamespaceGlobal, []*services.Export{export("c2", 1), export("c3", 2, headlessExport)}, "True Valid", "True Ready", "True TypeConflict", "c1 c2 c3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := facts()
			f.Namespace, f.Export = test.namespace, &OwnExport{Service: test.service}
			w := Make("shop", "cart", append([]*services.Export{export("c1", 0)}, test.remote...), f)
			for kind, want := range map[string]string{ConditionValid: test.valid, ConditionReady: test.ready, ConditionConflict: test.conflict} {
				if got := conditionOf(w.Conditions, kind); got != want {
					t.Errorf("%s: %q, want %q", kind, got, want)
				}
			}
			if got := clustersOf(w.Import); got != test.clusters {
				t.Errorf("imported of %q, want %q", got, test.clusters)
			}
			if want := strings.Contains(test.clusters, "c1"); w.Local != want {
				t.Errorf("own backends: %v", w.Local)
			}
		})
	}
}

func clustersOf(im *local.ServiceImport) string {
	if im == nil {
		return ""
	}
	var names []string
	for _, c := range im.Status.Clusters {
		names = append(names, c.Cluster)
	}
	return strings.Join(names, " ")
}

// The import and its derived Service (mcs.md B; behaviours 13, 14, 18, 21, 22), in stories of one cluster.
func TestTheImport(t *testing.T) {
	t.Parallel()
	remote := []*services.Export{export("c2", 0)}
	t.Run("13: only where the namespace is", func(t *testing.T) {
		t.Parallel()
		f := facts()
		f.Namespace = NamespaceAbsent
		if w := Make("shop", "cart", remote, f); w.Import != nil || w.Derived != nil {
			t.Errorf("%+v", w)
		}
		f.Export = &OwnExport{Service: service()}
		if w := Make("shop", "cart", append(remote, export("c1", 1)), f); w.Import != nil || w.Local || w.Conditions != nil {
			t.Errorf("with an export in a namespace that is being deleted: %+v", w)
		}
	})
	t.Run("14: the last unexport removes all, one before it does not", func(t *testing.T) {
		t.Parallel()
		two := Make("shop", "cart", append(remote, export("c3", 1, headlessExport)), facts())
		one := Make("shop", "cart", []*services.Export{export("c3", 1, headlessExport)}, facts())
		if none := Make("shop", "cart", nil, facts()); none.Import != nil || none.Derived != nil || none.Conditions != nil {
			t.Errorf("without exports there is %+v", none)
		}
		if clustersOf(two.Import) != "c2 c3" || clustersOf(one.Import) != "c3" || two.Import.Spec.Type == one.Import.Spec.Type {
			t.Errorf("of both %+v, of the one %+v", two.Import, one.Import)
		}
	})
	t.Run("18: what switches its type is made again", func(t *testing.T) {
		t.Parallel()
		f := facts()
		f.Derived = serve(Make("shop", "cart", remote, f).Derived, "10.0.0.1")
		if w := Make("shop", "cart", remote, f); w.Recreate || conditionOf(w.Import.Status.Conditions, ConditionReady) != "True Ready" {
			t.Errorf("unchanged: %+v", w)
		}
		w := Make("shop", "cart", []*services.Export{export("c2", 0, headlessExport)}, f)
		if !w.Recreate || w.Derived.Spec.ClusterIP != corev1.ClusterIPNone || conditionOf(w.Import.Status.Conditions, ConditionReady) != "False Pending" || w.Import.Spec.IPs != nil {
			t.Errorf("headless: %+v", w)
		}
		f.Derived = serve(w.Derived, corev1.ClusterIPNone)
		if w := Make("shop", "cart", []*services.Export{export("c2", 0, headlessExport)}, f); w.Recreate || conditionOf(w.Import.Status.Conditions, ConditionReady) != "True Ready" {
			t.Errorf("headless and there: %+v", w)
		}
	})
	t.Run("21: no family of the own cluster", func(t *testing.T) {
		t.Parallel()
		w := Make("shop", "cart", []*services.Export{export("c2", 0, families("IPv6"))}, facts())
		families, derived := w.Import.Annotations[AnnotationFamilies], w.Import.Annotations[AnnotationDerived]
		if got := conditionOf(w.Import.Status.Conditions, ConditionReady); got != "False IPFamilyNotSupported" || w.Derived != nil || families != "" || derived != "" {
			t.Errorf("%s: %+v", got, w)
		}
	})
	t.Run("a Service with an address and no port is refused, so there is none", func(t *testing.T) {
		t.Parallel()
		without := func(e *wire.ServiceExport) { e.Ports = nil }
		invalid := func(e *wire.ServiceExport) {
			e.Ports = []wire.ServiceExportPort{{Name: "Not_a_name", Protocol: "TCP", Port: 80}}
		}
		for _, change := range []func(*wire.ServiceExport){without, invalid} {
			w := Make("shop", "cart", []*services.Export{export("c2", 0, change)}, facts())
			if got := conditionOf(w.Import.Status.Conditions, ConditionReady); got != "False NoPorts" || w.Derived != nil || w.Import.Annotations[AnnotationDerived] != "" {
				t.Errorf("%s: %+v", got, w)
			}
			if w = Make("shop", "cart", []*services.Export{export("c2", 0, change, headlessExport)}, facts()); w.Derived == nil {
				t.Error("a headless Service needs none")
			}
			if w = Make("shop", "cart", []*services.Export{export("c2", 0, change), export("c3", 1)}, facts()); w.Derived == nil || len(w.Derived.Spec.Ports) == 0 {
				t.Errorf("the ports of another export: %+v", w)
			}
		}
	})
	t.Run("a namespace that is not global has no addresses", func(t *testing.T) {
		t.Parallel()
		f := facts()
		f.Namespace = NamespaceNotGlobal
		if w := Make("shop", "cart", remote, f); w.Derived != nil || conditionOf(w.Import.Status.Conditions, ConditionReady) != "False NamespaceNotGlobal" {
			t.Errorf("%+v", w)
		}
	})
	t.Run("another Service has the name", func(t *testing.T) {
		t.Parallel()
		f := facts()
		f.Foreign = "somebody else's"
		if w := Make("shop", "cart", remote, f); conditionOf(w.Import.Status.Conditions, ConditionReady) != "False Pending" || w.Import.Status.Conditions[0].Message != "somebody else's" {
			t.Errorf("%+v", w.Import.Status)
		}
	})
	t.Run("22: addresses in the order of the families", func(t *testing.T) {
		t.Parallel()
		f := facts()
		f.Families = []string{"IPv4", "IPv6"}
		dual := []*services.Export{export("c2", 0, families("IPv6", "IPv4"))}
		f.Derived = serve(Make("shop", "cart", dual, f).Derived, "10.0.0.1", "fd00::1")
		w := Make("shop", "cart", dual, f)
		if d := gocmp.Diff([]string{"fd00::1", "10.0.0.1"}, w.Import.Spec.IPs); d != "" {
			t.Error(d)
		}
		if got := w.Import.Annotations[AnnotationFamilies]; got != "IPv6,IPv4" {
			t.Errorf("families %q", got)
		}
	})
	t.Run("a name that no Service has", func(t *testing.T) {
		t.Parallel()
		long := export("c2", 0, func(w *wire.ServiceExport) { w.Name = strings.Repeat("x", 64) })
		if w := Make("shop", long.Name, []*services.Export{long}, facts()); w.Import != nil {
			t.Errorf("%+v", w.Import)
		}
	})
}

// mcs.md B, names of derived Services; behaviour 22.
func TestDerivedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"my-ns/my-svc": "derived-a2v4k9sqn6", "default/rebel-base": "derived-q358ba8kk0", "test/myservice": "derived-ugeabue9o3",
	} {
		namespace, short, _ := strings.Cut(name, "/")
		if got := derivedServiceName(&Merged{Namespace: namespace, Name: short}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The whole derived Service (mcs.md B, its content; behaviours 20, 22).
func TestTheDerivedService(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Labels, f.Annotations = Allowed{"team"}, Allowed{"note", "service.cilium.io/*"}
	w := Make("shop", "cart", []*services.Export{export(
		"c2", 0, ports(port("", 80), port("b", 81)), sticky(60), internal("Local"), distribution("PreferClose"),
		labels(map[string]string{"team": "a"}), annotations(map[string]string{"note": "n", wire.AnnotationGlobal: "false", wire.AnnotationShared: "false"}),
	)}, f)
	name := wire.DerivedServiceName("shop", "cart")
	policy, traffic, close := corev1.IPFamilyPolicyPreferDualStack, corev1.ServiceInternalTrafficPolicyLocal, "PreferClose"
	want := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name,
			Labels:      map[string]string{"team": "a", LabelServiceName: "cart", LabelWritten: Written},
			Annotations: map[string]string{"note": "n", wire.AnnotationGlobal: "true", AnnotationDerived: name, AnnotationFamilies: "IPv4", AnnotationWinner: "c2"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: &policy, InternalTrafficPolicy: &traffic, TrafficDistribution: &close,
			Ports:           []corev1.ServicePort{{Name: "unnamed-tcp-80", Protocol: "TCP", Port: 80}, {Name: "b", Protocol: "TCP", Port: 81}},
			SessionAffinity: corev1.ServiceAffinityClientIP, SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
		},
	}
	if d := gocmp.Diff(want, w.Derived); d != "" {
		t.Error(d)
	}
	if _, passes := w.Import.Annotations[wire.AnnotationGlobal]; !passes || w.Import.Spec.Ports[0].Name != "" {
		t.Errorf("the import: %+v", w.Import)
	}
	if local := maps.Clone(w.Import.Labels); local[LabelServiceName] != "" {
		t.Errorf("the import has labels of its Service: %v", local)
	}
}

// mcs.md B: endpointSliceObjects, where slices are written and where they are not.
func TestEndpointSliceObjects(t *testing.T) {
	t.Parallel()
	with := func(value string) func(*wire.ServiceExport) {
		return annotations(map[string]string{AnnotationSlices: value})
	}
	for name, test := range map[string]struct {
		export         *services.Export
		requested, all string // where slices are written on request, and for all imports
	}{
		"absent":                  {export("c2", 0), SlicesAbsent, SlicesPresent},
		"absent, headless":        {export("c2", 0, headlessExport), SlicesPresent, SlicesPresent},
		"true":                    {export("c2", 0, with("True")), SlicesPresent, SlicesPresent},
		"false":                   {export("c2", 0, with("false")), SlicesAbsent, SlicesAbsent},
		"false, headless":         {export("c2", 0, headlessExport, with("false")), SlicesAbsent, SlicesAbsent},
		"no family in common":     {export("c2", 0, headlessExport, families("IPv6")), SlicesAbsent, SlicesAbsent},
		"neither true nor absent": {export("c2", 0, headlessExport, with("")), SlicesAbsent, SlicesAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for which, want := range map[WhichSlices]string{NoSlices: SlicesAbsent, RequestedSlices: test.requested, AllSlices: test.all} {
				f := facts()
				f.Slices, f.Annotations = which, Allowed{AnnotationSlices}
				w := Make("shop", "cart", []*services.Export{test.export}, f)
				if got := w.Import.Status.EndpointSliceObjects; got != want {
					t.Errorf("%d: %s, want %s", which, got, want)
				}
				if w.Derived == nil {
					continue
				}
				// The derived Service has the annotation for writers of slices, and the import has only exported
				// annotations.
				if got := w.Derived.Annotations[AnnotationSlices] == "true"; got != (want == SlicesPresent) {
					t.Errorf("%d: the derived Service: %v", which, w.Derived.Annotations)
				}
				if _, has := test.export.Details.Annotations[AnnotationSlices]; !has && w.Import.Annotations[AnnotationSlices] != "" {
					t.Errorf("%d: the import: %v", which, w.Import.Annotations)
				}
				f.Derived, f.Import = serve(w.Derived, cmp.Or(w.Derived.Spec.ClusterIP, "10.96.0.1")), w.Import
				ready := Make("shop", "cart", []*services.Export{test.export}, f).Import.Status.Conditions[0]
				if ready.Status != metav1.ConditionTrue || strings.Contains(ready.Message, "No EndpointSlices") != (want == SlicesAbsent) {
					t.Errorf("%d: %+v", which, ready)
				}
			}
		})
	}
}

// mcs.md B: lastTransitionTime stays while the status does, also when the reason moves.
func TestConditionsKeepTheirTime(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Export = &OwnExport{}
	exports := []*services.Export{export("c1", 0), export("c2", 1, headlessExport)}
	first := Make("shop", "cart", exports, f)
	f.Export = &OwnExport{Conditions: first.Conditions}
	f.Import, f.Now = first.Import, f.Now.Add(time.Minute)
	if d := gocmp.Diff(first, Make("shop", "cart", exports, f)); d != "" {
		t.Errorf("unchanged: %s", d)
	}
	f.Export.Service = service()
	f.Derived = serve(first.Derived, corev1.ClusterIPNone)
	second := Make("shop", "cart", exports, f)
	since := func(w Wanted, kind string) time.Time {
		for _, c := range w.Conditions {
			if c.Type == kind {
				return c.LastTransitionTime.Time
			}
		}
		return time.Time{}
	}
	if !since(second, ConditionValid).Equal(f.Now) {
		t.Errorf("valid since %v", since(second, ConditionValid))
	}
	f.Export.Conditions, f.Now = second.Conditions, f.Now.Add(time.Minute)
	third := Make("shop", "cart", append(exports, export("c3", 2, sticky(1))), f)
	if !since(third, ConditionConflict).Equal(since(second, ConditionConflict)) || conditionOf(third.Conditions, ConditionConflict) == conditionOf(second.Conditions, ConditionConflict) {
		t.Errorf("other reasons: %+v", third.Conditions)
	}
}
