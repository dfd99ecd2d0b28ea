package mcs

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Merged is what the exports of one service are together.
type Merged struct {
	Namespace, Name string
	// Spec is that of the import, without addresses.
	Spec local.ServiceImportSpec
	// Labels and Annotations are those of the export that counts.
	Labels, Annotations map[string]string
	Winner              string     // the cluster whose export counts; empty: not known
	Clusters            []string   // that export it, by name
	Conflicts           []Conflict // in the order of their reasons below
}

// Merge merges the exports of one service, at most one of each cluster, in any order; it does not keep
// them. The first one by precedence counts (mcs.md B, precedence); ports are the union of all. Without
// exports it is nil.
func Merge(exports []*services.Export, by Precedence) *Merged {
	if len(exports) == 0 {
		return nil
	}
	exports = slices.Clone(exports)
	by.Sort(exports)
	first := exports[0]
	m := &Merged{
		Namespace: first.Namespace, Name: first.Name, Winner: first.Cluster,
		Labels: exportedLabels(first.Details.Labels), Annotations: exportedAnnotations(first.Details.Annotations),
		Spec: local.ServiceImportSpec{
			Type: first.Type, Ports: union(exports), SessionAffinity: corev1.ServiceAffinity(first.Affinity),
			SessionAffinityConfig: affinityConfig(first), IPFamilies: commonFamilies(exports, by).families,
		},
		Conflicts: conflicts(exports, by),
	}
	if policy := first.Details.InternalTraffic; policy != "" {
		m.Spec.InternalTrafficPolicy = (*corev1.ServiceInternalTrafficPolicy)(&policy)
	}
	if distribution := first.Details.TrafficDistribution; distribution != "" {
		m.Spec.TrafficDistribution = &distribution
	}
	for _, e := range exports {
		m.Clusters = append(m.Clusters, e.Cluster)
	}
	slices.Sort(m.Clusters)
	return m
}

// mergedOf is what an import was made of.
func mergedOf(im *local.ServiceImport) *Merged {
	m := &Merged{Namespace: im.Namespace, Name: im.Name, Spec: im.Spec, Labels: im.Labels, Annotations: maps.Clone(im.Annotations)}
	m.Spec.IPs = nil
	delete(m.Annotations, AnnotationDerived)
	m.Winner = m.Annotations[AnnotationWinner]
	for _, c := range im.Status.Clusters {
		m.Clusters = append(m.Clusters, c.Cluster)
	}
	return m
}

// Headless reports whether the service has no addresses of its own.
func (m *Merged) Headless() bool { return m.Spec.Type == wire.ServiceExportHeadless }

// affinityConfig is the configuration of the affinity by client address; nil for another one. A
// timeout that Kubernetes would refuse is the nearest that it takes.
func affinityConfig(e *services.Export) *corev1.SessionAffinityConfig {
	if e.Affinity != wire.SessionAffinityClientIP {
		return nil
	}
	const day = 24 * time.Hour
	seconds := int32(min(max(e.Timeout, time.Second), day) / time.Second)
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
}

// Families are the families of addresses that an import with these exports has, in its order; none when no
// export names any, and it may have all. Others of its derived Service lead to no backend.
func Families(exports []*services.Export, by Precedence) []corev1.IPFamily {
	exports = slices.Clone(exports)
	by.Sort(exports)
	return commonFamilies(exports, by).families
}

// agreedFamilies are the families of addresses in which all clusters but the dissenters reach each other.
type agreedFamilies struct {
	families []corev1.IPFamily // in the order of the first export that names some; none when none does
	decided  *services.Export  // whose order it is; nil when none names any
	// dissenters do not narrow the families, and lack some: of the own cluster's one, of others all.
	dissenters []*services.Export
}

// commonFamilies intersects the families in the order of precedence. Exports without families do not count.
// Narrowing is no conflict (mcs.md B, ipFamilies). The families of the own cluster's export are not narrowed.
// The exports are sorted.
func commonFamilies(exports []*services.Export, by Precedence) (a agreedFamilies) {
	for _, e := range exports {
		if len(e.Details.Families) == 0 {
			continue
		}
		if a.decided == nil {
			a.decided = e
			for _, f := range e.Details.Families {
				a.families = append(a.families, corev1.IPFamily(f))
			}
			continue
		}
		narrowed := slices.DeleteFunc(slices.Clone(a.families), func(f corev1.IPFamily) bool {
			return !slices.Contains(e.Details.Families, string(f))
		})
		if len(narrowed) == 0 || by.isOwn(a.decided) && len(narrowed) < len(a.families) {
			a.dissenters = append(a.dissenters, e)
			continue
		}
		a.families = narrowed
	}
	return a
}

// joined are families with commas between them.
func joined(families []corev1.IPFamily) string {
	texts := make([]string, len(families))
	for i, f := range families {
		texts[i] = string(f)
	}
	return strings.Join(texts, ",")
}
