package mcs

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Namespace is what a namespace is in the own cluster.
type Namespace int

// The states of a namespace.
const (
	NamespaceAbsent    Namespace = iota // not there, or going away: nothing is created in it
	NamespaceNotGlobal                  // there, without a part in the mesh (wire.md §4.5)
	NamespaceGlobal
)

// WhichSlices says for which imports EndpointSlices of the backends of other clusters are written.
type WhichSlices int

// For which imports slices are written.
const (
	NoSlices        WhichSlices = iota
	RequestedSlices             // those that are headless, or whose exports request slices (mcs.md B)
	AllSlices                   // all but those whose exports decline them
)

// Facts are what the own cluster has of a service of the mesh.
type Facts struct {
	Cluster   string // the own one
	Namespace Namespace
	Families  []string // of addresses that the own cluster gives to services: services.IPv4, services.IPv6
	Slices    WhichSlices
	// Export is the own ServiceExport; nil for none.
	Export *OwnExport
	// Import and Derived are as they are; nil for none.
	Import  *local.ServiceImport
	Derived *corev1.Service
	// Winner is the remote cluster whose export has counted until now, or is to count; empty: the oldest one. Seen
	// returns since when a cluster is known; nil: this is not known for any ([Precedence]).
	Winner string
	Seen   func(cluster string) time.Time
	// Labels and Annotations are those of remote exports that the own objects may have.
	Labels, Annotations Allowed
	// Hold: the import stays what it is a merger of, since not every cluster that is a part of it was read.
	// Only what the own cluster has of it is followed: the derived Service, its addresses, the status.
	Hold bool
	// Foreign says why the derived Service cannot be written, because another one of that name is
	// there; empty when it can.
	Foreign string
	Now     time.Time
}

// OwnExport is a ServiceExport of the own cluster.
type OwnExport struct {
	Service    *corev1.Service    // of the same name; nil for none
	Conditions []metav1.Condition // as they are
}

// Wanted is how the objects of the own cluster should be.
type Wanted struct {
	// Import is the ServiceImport with its status; nil: there should be none.
	Import *local.ServiceImport
	// Derived is the Service that has the addresses of the import; nil: there should be none. It
	// is owned by the import, which only who writes it knows.
	Derived *corev1.Service
	// Recreate: the derived Service that is there has to be deleted first, since it cannot become
	// what it should be (mcs.md B, switching headlessness).
	Recreate bool
	// Conditions are those of the own ServiceExport; nil without one, and when its namespace is going away.
	Conditions []metav1.Condition
	// Local: the own cluster exports the service, so the derived Service has its backends ([LocalSlices]).
	Local bool
}

// Make says how the objects of the own cluster should be for a service with these exports of all
// clusters, the own one included. An own export that is not valid counts for nothing (mcs.md B).
func Make(namespace, name string, exports []*services.Export, f Facts) Wanted {
	var w Wanted
	w.Local = f.Export != nil && validity(&f).Status == metav1.ConditionTrue
	exports = slices.DeleteFunc(slices.Clone(exports), func(e *services.Export) bool {
		return e.Cluster == f.Cluster && !w.Local || len(validation.IsDNS1123Label(e.Name)) > 0 // no Service can have this name
	})
	m := Merge(exports, f.Precedence())
	if m != nil && m.Winner != f.Cluster {
		m.Labels, m.Annotations = f.Labels.of(m.Labels), f.Annotations.of(m.Annotations)
	}
	if f.Hold {
		m = mergedOf(f.Import)
	} else if f.Export != nil && f.Namespace != NamespaceAbsent { // whether the exporters agree is not known while one was not read
		w.Conditions = exportConditions(m, &f)
	}
	if m == nil || f.Namespace == NamespaceAbsent {
		w.Local = false
		return w
	}
	supported := supportedFamilies(m, &f)
	w.Import = newImport(m, &f, supported)
	if hasService(m, &f, supported) {
		w.Derived = newDerived(m, supported, w.Import)
		if w.Import.Status.EndpointSliceObjects == SlicesPresent { // for who writes the slices
			w.Derived.Annotations[AnnotationSlices] = "true"
		}
		w.Recreate = f.Derived != nil && headless(f.Derived) != m.Headless()
	}
	w.Local = w.Local && w.Derived != nil
	return w
}

// hasService reports whether there is a derived Service. The API server refuses one that has an address and no port.
func hasService(m *Merged, f *Facts, supported []corev1.IPFamily) bool {
	return f.Namespace == NamespaceGlobal && len(supported) > 0 && (m.Headless() || len(m.Spec.Ports) > 0)
}

// Precedence says whose export counts.
func (f *Facts) Precedence() Precedence {
	return Precedence{Own: f.Cluster, Winner: f.Winner, Seen: f.Seen, Now: f.Now}
}

// supportedFamilies are those of the service that the own cluster has too, in the order of the service.
// A service of which no cluster names families may have any.
func supportedFamilies(m *Merged, f *Facts) []corev1.IPFamily {
	families := m.Spec.IPFamilies
	if len(families) == 0 {
		for _, own := range f.Families {
			families = append(families, corev1.IPFamily(own))
		}
	}
	return slices.DeleteFunc(slices.Clone(families), func(of corev1.IPFamily) bool { return !slices.Contains(f.Families, string(of)) })
}

// newImport returns the wanted import.
func newImport(m *Merged, f *Facts, supported []corev1.IPFamily) *local.ServiceImport {
	im := &local.ServiceImport{
		TypeMeta:   metav1.TypeMeta{APIVersion: Group + "/" + Version, Kind: KindServiceImport},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: with(m.Labels, LabelWritten, Written)},
		Spec:       m.Spec,
	}
	im.Annotations = with(m.Annotations, AnnotationFamilies, joined(supported))
	if m.Winner != "" {
		im.Annotations[AnnotationWinner] = m.Winner
	}
	if hasService(m, f, supported) {
		im.Annotations[AnnotationDerived] = derivedServiceName(m)
		im.Spec.IPs = addresses(m, f.Derived, supported)
	}
	im.Status.EndpointSliceObjects = SlicesAbsent
	if im.Annotations[AnnotationDerived] != "" && f.Slices.has(m) {
		im.Status.EndpointSliceObjects = SlicesPresent
	}
	for _, cluster := range m.Clusters {
		im.Status.Clusters = append(im.Status.Clusters, local.ClusterStatus{Cluster: cluster})
	}
	im.Status.Conditions = importConditions(m, f, supported, im)
	return im
}

// has reports whether slices are written for the backends that other clusters have of an import (mcs.md B, C).
func (w WhichSlices) has(m *Merged) bool {
	if w == NoSlices {
		return false
	}
	value, set := m.Annotations[AnnotationSlices]
	if !set {
		return w == AllSlices || m.Headless()
	}
	return strings.EqualFold(value, "true")
}

// usable reports whether a derived Service is there, and of the right type.
func usable(m *Merged, derived *corev1.Service) bool {
	return derived != nil && headless(derived) == m.Headless()
}

// headless reports whether a derived Service has no addresses.
func headless(derived *corev1.Service) bool { return derived.Spec.ClusterIP == corev1.ClusterIPNone }

// addresses are those of the import: what the derived Service has of the supported families, in their
// order (mcs.md B, spec.ips).
func addresses(m *Merged, derived *corev1.Service, supported []corev1.IPFamily) []string {
	if m.Headless() || !usable(m, derived) {
		return nil
	}
	var ips []string
	for _, family := range supported {
		for i, of := range derived.Spec.IPFamilies {
			if of == family && i < len(derived.Spec.ClusterIPs) {
				ips = append(ips, derived.Spec.ClusterIPs[i])
			}
		}
	}
	return ips
}

// newDerived is the Service that has the addresses of the import (mcs.md B, derived Service). Its
// labels and annotations are those of the import, but for one that would keep the backends of the own cluster from others.
func newDerived(m *Merged, supported []corev1.IPFamily, im *local.ServiceImport) *corev1.Service {
	traffic := corev1.ServiceInternalTrafficPolicyCluster
	if m.Spec.InternalTrafficPolicy != nil {
		traffic = *m.Spec.InternalTrafficPolicy
	}
	annotations := with(im.Annotations, wire.AnnotationGlobal, "true")
	delete(annotations, wire.AnnotationShared)
	delete(annotations, wire.AnnotationSharedAlias)
	svc := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: derivedServiceName(m),
			Labels: with(im.Labels, LabelServiceName, m.Name), Annotations: annotations,
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), Ports: derivedPorts(m.Spec.Ports),
			InternalTrafficPolicy: &traffic, TrafficDistribution: m.Spec.TrafficDistribution,
		},
	}
	if m.Headless() {
		svc.Spec.ClusterIP = corev1.ClusterIPNone
		return svc
	}
	svc.Spec.SessionAffinity, svc.Spec.SessionAffinityConfig = m.Spec.SessionAffinity, m.Spec.SessionAffinityConfig
	return svc
}

func derivedServiceName(m *Merged) string { return wire.DerivedServiceName(m.Namespace, m.Name) }

// with is a copy of texts with one more.
func with(texts map[string]string, key, value string) map[string]string {
	out := maps.Clone(texts)
	if out == nil {
		out = make(map[string]string, 2)
	}
	out[key] = value
	return out
}
