package wire

import (
	"fmt"
	"strings"
)

// The annotations of services, with the older names that are still valid (wire.md §1.3, §4.4), and that of
// namespaces (§4.5).
const (
	AnnotationGlobal        = "service.cilium.io/global"
	AnnotationGlobalAlias   = "io.cilium/global-service"
	AnnotationShared        = "service.cilium.io/shared"
	AnnotationSharedAlias   = "io.cilium/shared-service"
	AnnotationAffinity      = "service.cilium.io/affinity"
	AnnotationAffinityAlias = "io.cilium/service-affinity"

	AnnotationGlobalNamespace = "clustermesh.cilium.io/global"
)

// Labels of services and endpoint slices that have a meaning here.
const (
	LabelHeadless    = "service.kubernetes.io/headless"
	LabelServiceName = "kubernetes.io/service-name"
	// LabelSliceManagedBy names the writer of an endpoint slice; MeshSliceManager writes the slices whose
	// endpoints are remote backends (mcs.md C).
	LabelSliceManagedBy = "endpointslice.kubernetes.io/managed-by"
	MeshSliceManager    = "endpointslice-mesh-controller.cilium.io"
)

// Affinity selects the preferred backends of a global service.
type Affinity string

// The affinities.
const (
	AffinityNone   Affinity = ""
	AffinityLocal  Affinity = "local"
	AffinityRemote Affinity = "remote"
)

// ServiceAnnotations are the settings for the mesh in the annotations of a Service.
type ServiceAnnotations struct {
	Global   bool     // backends of all clusters are used
	Shared   bool     // its backends are exported; false unless Global
	Affinity Affinity // AffinityNone unless Global
}

// ParseServiceAnnotations reads the annotations of a Service. "true" in any letter case is true, and any other
// value is false. A current name with any value overrides an older name (wire.md §4.4). An unknown affinity is
// an error; the result is still valid, with no affinity.
func ParseServiceAnnotations(annotations map[string]string) (ServiceAnnotations, error) {
	global, _ := annotation(annotations, AnnotationGlobal, AnnotationGlobalAlias)
	if !strings.EqualFold(global, "true") {
		return ServiceAnnotations{}, nil
	}
	shared, set := annotation(annotations, AnnotationShared, AnnotationSharedAlias)
	a := ServiceAnnotations{Global: true, Shared: !set || strings.EqualFold(shared, "true")}

	text, _ := annotation(annotations, AnnotationAffinity, AnnotationAffinityAlias)
	switch affinity := Affinity(strings.ToLower(text)); affinity {
	case AffinityLocal, AffinityRemote:
		a.Affinity = affinity
	case AffinityNone, "none":
	default:
		return a, fmt.Errorf("unrecognized service affinity value: %q", text)
	}
	return a, nil
}

func annotation(annotations map[string]string, name, alias string) (string, bool) {
	if value, ok := annotations[name]; ok {
		return value, true
	}
	value, ok := annotations[alias]
	return value, ok
}

// NamespaceIsGlobal reports whether the entries of a namespace with these
// annotations are exported (wire.md §4.5).
func NamespaceIsGlobal(annotations map[string]string, byDefault bool) bool {
	value, ok := annotations[AnnotationGlobalNamespace]
	if !ok {
		return byDefault
	}
	return strings.EqualFold(value, "true")
}
