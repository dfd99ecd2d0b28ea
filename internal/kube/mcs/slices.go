package mcs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// maxSuffix is how much of the name of a slice is in that of its copy (mcs.md B, local backends).
const maxSuffix = 40

// LocalSlices are copies of the slices of a Service that the own cluster exports, for the derived Service: through them
// it has the own backends, and other clusters read them from it (mcs.md B, local backends). A port of which the
// clusters have agreed on another number, so that the derived Service does not have it as the Service does, is not in
// them; a slice that has none left is not copied. They are in the order of their names, and have no owner: only their
// writer knows it.
func LocalSlices(cluster string, w Wanted, svc *corev1.Service, of []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	families := strings.Split(w.Import.Annotations[AnnotationFamilies], ",")
	var copies []*discoveryv1.EndpointSlice
	taken := make(map[string]bool)
	for _, s := range of {
		if s.Labels[discoveryv1.LabelManagedBy] == wire.MeshSliceManager || !slices.Contains(families, string(s.AddressType)) {
			continue
		}
		ports := copiedPorts(w.Import.Spec.Ports, svc, s.Ports)
		if len(ports) == 0 && len(s.Ports) > 0 {
			continue
		}
		name := w.Derived.Name + "-" + suffix(s.Name, svc.Name)
		if taken[name] { // of another one with the same end
			name = w.Derived.Name + "-" + digest(s.Name)
		}
		taken[name] = true
		copies = append(copies, &discoveryv1.EndpointSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace, Name: name, Labels: sliceLabels(cluster, w, s.Name)},
			// Endpoints are shared: no code changes them.
			AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: ports,
		})
	}
	slices.SortFunc(copies, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return copies
}

// suffix is what makes the name of a copy: the end of the slice's name without that of its Service.
func suffix(slice, service string) string {
	rest := strings.TrimPrefix(slice, service)
	if len(rest) > maxSuffix {
		rest = rest[len(rest)-maxSuffix:]
	}
	return cmp.Or(strings.TrimLeft(rest, "-."), digest(slice))
}

// digest is a short name of a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// sliceLabels are those of the copy of a slice.
func sliceLabels(cluster string, w Wanted, slice string) map[string]string {
	labels := with(w.Derived.Labels, LabelSourceCluster, cluster)
	labels[discoveryv1.LabelManagedBy] = ManagedByLocalSlice
	labels[wire.LabelServiceName] = w.Derived.Name
	labels[LabelLocalSlice] = slice
	if len(validation.IsValidLabelValue(slice)) > 0 {
		labels[LabelLocalSlice] = digest(slice)
	}
	if headless(w.Derived) {
		labels[wire.LabelHeadless] = ""
	}
	return labels
}

// copiedPorts are the ports of a slice that the derived Service has as the Service has them, with their
// names there.
func copiedPorts(imported []local.ServicePort, svc *corev1.Service, of []discoveryv1.EndpointPort) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for _, p := range of {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		own := slices.IndexFunc(svc.Spec.Ports, func(o corev1.ServicePort) bool { return o.Name == name })
		agreed := slices.IndexFunc(imported, func(o local.ServicePort) bool { return o.Name == name })
		if own < 0 || agreed < 0 || svc.Spec.Ports[own].Port != imported[agreed].Port ||
			cmp.Or(svc.Spec.Ports[own].Protocol, corev1.ProtocolTCP) != imported[agreed].Protocol {
			continue
		}
		if derived, fits := derivedName(imported[agreed], imported); fits {
			p.Name = &derived
			out = append(out, p)
		}
	}
	return out
}
