package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

// objects are the objects of one service in one cluster, as in an API server in which every plan is executed.
type objects struct {
	cluster  wire.ClusterInfo
	families []string            // families of the cluster IPs
	use      services.BackendUse // of a remote cluster, by its readers

	// The objects of users, and those that Kubernetes makes for them; nil for none.
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
	export  *local.ServiceExport

	// The objects made from these.
	imported *local.ServiceImport
	derived  *corev1.Service
	copies   []*discoveryv1.EndpointSlice
	created  int // number of derived Services so far
}

func (o *objects) own() bool { return o.cluster.Name == viewtest.Own }

// exported is the published export of the cluster; nil for none.
func (o *objects) exported() *services.Export {
	if o.export == nil || o.service == nil {
		return nil
	}
	if w := publish.ServiceExport(o.cluster, o.export, o.service); w != nil {
		return services.ExportFromWire(w)
	}
	return nil
}

// carryOut plans the objects of the MCS API, and executes the plans until there is nothing more to do.
func (o *objects) carryOut(t *testing.T, name string, exports []*services.Export) {
	t.Helper()
	for range 3 { // an import has the addresses of its derived Service, which depends on the import
		f := mcs.Facts{
			Cluster: o.cluster.Name, Namespace: mcs.NamespaceGlobal, Families: o.families, Slices: mcs.AllSlices, Import: o.imported, Derived: o.derived, Now: viewtest.Epoch.Add(time.Hour),
			Labels: mcs.Allowed{"team"}, Annotations: mcs.Allowed{"service.cilium.io/*"},
		}
		if o.export != nil {
			f.Export = &mcs.OwnExport{Service: o.service}
		}
		w := mcs.Make(namespace, name, exports, f)
		var copies []*discoveryv1.EndpointSlice
		if w.Local {
			copies = mcs.LocalSlices(o.cluster.Name, w, o.service, o.slices)
		}
		derived := o.served(w)
		done := equality.Semantic.DeepEqual(o.imported, w.Import) && equality.Semantic.DeepEqual(o.derived, derived) && equality.Semantic.DeepEqual(o.copies, copies)
		o.imported, o.derived, o.copies = w.Import, derived, copies
		if done {
			return
		}
	}
	t.Fatalf("%s: what is written of %s again and again is never the same", o.cluster.Name, name)
}

// served is the derived Service of a plan with addresses, which it keeps until it is replaced.
func (o *objects) served(w mcs.Wanted) *corev1.Service {
	if w.Derived == nil {
		return nil
	}
	svc, is := w.Derived.DeepCopy(), o.derived
	if is == nil || w.Recreate {
		o.created++
		is = &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(o.created))}}
		for _, family := range o.families {
			is.Spec.IPFamilies = append(is.Spec.IPFamilies, corev1.IPFamily(family))
			is.Spec.ClusterIPs = append(is.Spec.ClusterIPs, addressOf(family, 1000+o.created))
		}
		if svc.Spec.ClusterIP == corev1.ClusterIPNone {
			is.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		}
	}
	svc.UID, svc.Spec.IPFamilies, svc.Spec.ClusterIPs, svc.Spec.ClusterIP = is.UID, is.Spec.IPFamilies, is.Spec.ClusterIPs, is.Spec.ClusterIPs[0]
	return svc
}

// part is a Service of the cluster, with these slices, in the own cluster's view: the own one completely, a remote one
// as published; nil for none.
func (o *objects) part(svc *corev1.Service, of []*discoveryv1.EndpointSlice) *services.Service {
	if svc == nil || !o.own() && !publish.Exported(svc, nil, true) {
		return nil
	}
	source := wire.SourceClusterMesh
	if o.own() {
		source = wire.SourceKubernetes
	}
	s := services.FromWire(publish.Service(o.cluster, svc, of), source)
	if o.own() {
		a, _ := wire.ParseServiceAnnotations(svc.Annotations)
		s.Shared, s.IncludeExternal, s.Affinity = a.Shared, a.Global, a.Affinity
	}
	var details []*services.Slice
	for _, slice := range of {
		details = append(details, services.SliceFromWire(publish.EndpointSlice(o.cluster, slice), source))
	}
	s = s.WithSlices(details)
	s.Use = o.use
	return s
}

func addressOf(family string, n int) string {
	if family == services.IPv4 {
		return fmt.Sprintf("10.0.%d.%d", n/250, 1+n%250)
	}
	return fmt.Sprintf("fd00::%x", n+1)
}

// randomize makes new random objects of users for the service.
func (o *objects) randomize(rng *rand.Rand, name string) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	o.service, o.slices, o.export = nil, nil, nil
	if !o.own() {
		o.use = services.BackendUse(max(0, rng.IntN(7)-3))
	}
	if rng.IntN(4) > 0 {
		o.export = &local.ServiceExport{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(viewtest.Epoch.Add(time.Duration(rng.IntN(4)) * time.Second)),
		}}
		o.export.Spec.ExportedLabels = map[string]string{"team": pick("a", "b")}
		said := make(map[string]string)
		for key, value := range map[string]string{wire.AnnotationAffinity: pick("", "", "local", "remote"), mcs.AnnotationSlices: pick("", "true", "True", "false")} {
			if value != "" {
				said[key] = value
			}
		}
		o.export.Spec.ExportedAnnotations = said
	}
	if rng.IntN(7) == 0 {
		return // an export without a Service
	}
	o.service = &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{wire.AnnotationGlobal: pick("true", "false")}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinity(pick("None", "ClientIP")), Ports: randomPorts(rng)},
	}
	for _, family := range o.families[rng.IntN(len(o.families)):] {
		o.service.Spec.IPFamilies = append(o.service.Spec.IPFamilies, corev1.IPFamily(family))
		o.service.Spec.ClusterIPs = append(o.service.Spec.ClusterIPs, addressOf(family, 2000))
	}
	switch rng.IntN(10) {
	case 0:
		o.service.Spec.Type = corev1.ServiceTypeExternalName
		return
	case 1, 2, 3:
		o.service.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		o.service.Spec.Ports = o.service.Spec.Ports[:rng.IntN(1+len(o.service.Spec.Ports))]
	}
	o.service.Spec.ClusterIP = o.service.Spec.ClusterIPs[0]
	for n := range rng.IntN(4) {
		family := string(o.service.Spec.IPFamilies[rng.IntN(len(o.service.Spec.IPFamilies))])
		o.slices = append(o.slices, randomSlice(rng, n, family, o.service))
	}
}

// randomPorts are ports that Kubernetes accepts: one without a name, or some with different names and numbers. Clusters
// disagree on the number for a name, and on the name of a number.
func randomPorts(rng *rand.Rand) (all []corev1.ServicePort) {
	for _, p := range []corev1.ServicePort{
		{Name: "http", Protocol: "TCP", Port: 80 + rng.Int32N(2)}, {Name: "metrics", Protocol: "TCP", Port: 9090}, {Name: "dns", Protocol: "UDP", Port: 80}, {Name: "web", Protocol: "TCP", Port: 82 - rng.Int32N(2)},
	} {
		if rng.IntN(2) == 0 && !slices.ContainsFunc(all, func(o corev1.ServicePort) bool { return o.Protocol == p.Protocol && o.Port == p.Port }) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		all = append(all, corev1.ServicePort{Port: 80, Protocol: "TCP"})
	}
	return all
}

// randomSlice is a slice of a Service with most of its ports. No other slice of the Service has its addresses; other
// clusters may have them.
func randomSlice(rng *rand.Rand, number int, family string, of *corev1.Service) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: of.Namespace, Name: fmt.Sprint(of.Name, "-", number), Labels: map[string]string{wire.LabelServiceName: of.Name}},
		AddressType: discoveryv1.AddressType(family),
	}
	for _, p := range of.Spec.Ports {
		if rng.IntN(5) > 0 {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(8000 + p.Port + rng.Int32N(2))})
		}
	}
	for n := range rng.IntN(4) {
		state := rng.IntN(5)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addressOf(family, 10*number+n)}, NodeName: new([]string{"n", "m"}[rng.IntN(2)]), Zone: new([]string{"a", "b"}[rng.IntN(2)]),
			Conditions: discoveryv1.EndpointConditions{Ready: new(state > 1), Serving: new(state > 0), Terminating: new(state == 1)},
		})
	}
	return s
}
