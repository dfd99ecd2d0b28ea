package endpointslices

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The annotations of a Service that are about its slices alone (mcs.md B, C).
const (
	// AnnotationSync asks for slices of remote backends, or for none; without it headless Services have them.
	AnnotationSync = "service.cilium.io/global-sync-endpoint-slices"
	// AnnotationFamilies are the address families of a Service's remote backends, such as "IPv4,IPv6".
	AnnotationFamilies = "clustermesh.cilium.io/supported-ip-families"
)

// Eligible reports whether a Service of the own cluster gets slices of remote backends (mcs.md C): it is
// global, by the name of the annotation or its alias, and asks for them, or is headless and does not say.
// One of the type ExternalName has no endpoints at all.
func Eligible(svc *corev1.Service) bool {
	a, _ := wire.ParseServiceAnnotations(svc.Annotations) // it is valid even with an unknown affinity
	if !a.Global || svc.Spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	if asked, says := svc.Annotations[AnnotationSync]; says {
		return strings.EqualFold(asked, "true")
	}
	return headless(svc)
}

func headless(svc *corev1.Service) bool { return svc.Spec.ClusterIP == corev1.ClusterIPNone }

// families are those that the slices of a Service have: what the annotation says, if that can be read,
// else those of the Service.
func families(svc *corev1.Service) []discoveryv1.AddressType {
	if said, ok := parseFamilies(strings.Split(svc.Annotations[AnnotationFamilies], ",")); ok {
		return said
	}
	texts := make([]string, 0, len(svc.Spec.IPFamilies))
	for _, f := range svc.Spec.IPFamilies {
		texts = append(texts, string(f))
	}
	if own, ok := parseFamilies(texts); ok {
		return own
	}
	return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
}

// parseFamilies fails for no family, and for anything that is none.
func parseFamilies(texts []string) (all []discoveryv1.AddressType, ok bool) {
	for _, text := range texts {
		f := discoveryv1.AddressType(strings.TrimSpace(text))
		if f != discoveryv1.AddressTypeIPv4 && f != discoveryv1.AddressTypeIPv6 {
			return nil, false
		}
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all, len(all) > 0
}
