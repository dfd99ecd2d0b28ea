package mcs

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxAnnotations bounds the annotations of an import, in bytes. Kubernetes takes 256 KiB of an object,
// of which ours need a few.
const maxAnnotations = 200 << 10

// exportedLabels are the labels of an export that an object of Kubernetes can have. Those that steer the
// mesh or the slices of a service are not for a remote to set.
func exportedLabels(labels map[string]string) map[string]string {
	return kept(labels, func(key, value string) bool {
		return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 && !steersMesh(key)
	})
}

// exportedAnnotations does the same for annotations. Of too many the first by name are there.
func exportedAnnotations(annotations map[string]string) map[string]string {
	size := 0
	return kept(annotations, func(key, value string) bool {
		if steersMesh(key) || key == corev1.LastAppliedConfigAnnotation || size+len(key)+len(value) > maxAnnotations {
			return false
		}
		size += len(key) + len(value)
		return true
	})
}

// kept are the texts with valid keys that pass, in the order of their keys; nil for none. Keys of annotations are valid
// in upper and lower case.
func kept(texts map[string]string, passes func(key, value string) bool) map[string]string {
	var out map[string]string
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 || !passes(key, texts[key]) {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(texts))
		}
		out[key] = texts[key]
	}
	return out
}

// steersMesh tells of a label or an annotation that says to controllers what belongs to what. No export sets
// it, also not that of the own cluster.
func steersMesh(key string) bool {
	domain, _, _ := strings.Cut(strings.ToLower(key), "/")
	switch domain {
	case "multicluster.kubernetes.io", "multicluster.x-k8s.io", "mesh-agent.io", "mesh.cilium.io", "clustermesh.cilium.io",
		"endpointslice.kubernetes.io", "service.kubernetes.io", "kubernetes.io":
		return true
	}
	return key == LabelLocalSlice
}
