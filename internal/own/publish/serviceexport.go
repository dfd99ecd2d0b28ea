package publish

import (
	"slices"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ServiceExport is what the cluster publishes of an export of a service (spec wire.md §1.5). It is nil for a service
// that is a name for something elsewhere. Fields for which a reader would refuse the export are left out, or have their
// default value of Kubernetes. Maps are shared with the export.
func ServiceExport(cluster wire.ClusterInfo, export *local.ServiceExport, svc *corev1.Service) *wire.ServiceExport {
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	out := &wire.ServiceExport{
		Cluster: cluster.Name, Namespace: export.Namespace, Name: export.Name,
		Annotations: export.Spec.ExportedAnnotations, Labels: export.Spec.ExportedLabels,
		ExportCreationTimestamp: wire.ExportTime{Time: exportedSince(export, svc)},
		Type:                    wire.ServiceExportClusterSetIP,
		SessionAffinity:         wire.SessionAffinityNone,
		InternalTrafficPolicy:   known((*string)(svc.Spec.InternalTrafficPolicy), wire.InternalTrafficCluster, wire.InternalTrafficLocal),
		TrafficDistribution:     known(svc.Spec.TrafficDistribution, wire.PreferClose, wire.PreferSameZone, wire.PreferSameNode),
	}
	if headless(svc) {
		out.Type = wire.ServiceExportHeadless
	}
	if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.SessionAffinity = wire.SessionAffinityClientIP
	}
	if c := svc.Spec.SessionAffinityConfig; c != nil {
		out.SessionAffinityConfig = new(wire.SessionAffinityConfig)
		if c.ClientIP != nil {
			out.SessionAffinityConfig.ClientIP = &wire.ClientIPConfig{TimeoutSeconds: c.ClientIP.TimeoutSeconds}
		}
	}
	out.Ports = make([]wire.ServiceExportPort, 0, len(svc.Spec.Ports))
	for _, p := range svc.Spec.Ports {
		out.Ports = append(out.Ports, wire.ServiceExportPort{Name: p.Name, Protocol: string(p.Protocol), AppProtocol: p.AppProtocol, Port: p.Port})
	}
	for _, family := range svc.Spec.IPFamilies {
		out.IPFamilies = append(out.IPFamilies, string(family))
	}
	return out
}

// exportOf is what the cluster publishes of the export of this name; nil for nothing.
func exportOf(txn statedb.ReadTxn, from *local.Cluster, own wire.ClusterInfo, name string, defaultGlobal bool) *wire.ServiceExport {
	export, marked := from.ServiceExports.Get(txn, name)
	svc, found := from.Services.Get(txn, name)
	if !marked || !found || !global(namespaceOf(txn, from, name), defaultGlobal) {
		return nil
	}
	return ServiceExport(own, export, svc)
}

// exportedSince is when the export was created: of clusters in conflict the oldest counts. A manifest may not contain
// the time; then the service's age counts, and without that the export is as old as can be, which a restart does not
// change.
func exportedSince(export *local.ServiceExport, svc *corev1.Service) time.Time {
	for _, t := range []time.Time{export.CreationTimestamp.Time, svc.CreationTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Unix(0, 0)
}

// known is the value, nil unless it is one of those that readers know.
func known(value *string, values ...string) *string {
	if value == nil || !slices.Contains(values, *value) {
		return nil
	}
	return value
}
