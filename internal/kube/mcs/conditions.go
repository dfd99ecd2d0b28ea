package mcs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// The types of conditions (mcs.md B).
const (
	ConditionValid    = "Valid"
	ConditionReady    = "Ready"
	ConditionConflict = "Conflict"
)

// The reasons of conditions, except those of conflicts (mcs.md B).
const (
	ReasonValid                = "Valid"
	ReasonReady                = "Ready"
	ReasonPending              = "Pending"
	ReasonNoService            = "NoService"
	ReasonInvalidServiceType   = "InvalidServiceType"
	ReasonNamespaceNotGlobal   = "NamespaceNotGlobal"
	ReasonIPFamilyNotSupported = "IPFamilyNotSupported"
	ReasonNoPorts              = "NoPorts"
	ReasonNoConflicts          = "NoConflicts"
)

const notGlobal = "The namespace is not global: its services are neither exported nor imported. " +
	"Annotate it with clustermesh.cilium.io/global: \"true\" to have them in the mesh."

const noSlices = "The service can be used if the data path knows the backends of other clusters, as that of Cilium does. " +
	"No EndpointSlices are written for them, so kube-proxy does not reach them: see docs/mcs.md, Remote backends."

// validity is the condition Valid of the own export.
func validity(f *Facts) metav1.Condition {
	invalid := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: ConditionValid, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	svc := f.Export.Service
	switch {
	case f.Namespace != NamespaceGlobal:
		return invalid(ReasonNamespaceNotGlobal, notGlobal)
	case svc == nil:
		return invalid(ReasonNoService, "There is no Service of this name in the namespace: create it, or delete the export.")
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return invalid(ReasonInvalidServiceType, "A Service of the type ExternalName cannot be exported: it has no backends of its own.")
	}
	return metav1.Condition{Type: ConditionValid, Status: metav1.ConditionTrue, Reason: ReasonValid, Message: "The Service can be exported."}
}

// exportConditions are those of the own export, in the order of their types.
func exportConditions(m *Merged, f *Facts) []metav1.Condition {
	valid := validity(f)
	var all []metav1.Condition
	if valid.Status == metav1.ConditionTrue {
		all = append(all, conflictCondition(m), valid, metav1.Condition{
			Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The Service is published for other clusters to read.",
		})
	} else {
		all = append(all, valid, metav1.Condition{
			Type: ConditionReady, Status: metav1.ConditionFalse, Reason: ReasonPending, Message: "The export is not valid: see the condition Valid.",
		})
	}
	return dated(f.Export.Conditions, all, f.Now)
}

// conflictCondition says whether the exporters agree. All of them have it.
func conflictCondition(m *Merged) metav1.Condition {
	if m == nil || len(m.Conflicts) == 0 {
		return metav1.Condition{Type: ConditionConflict, Status: metav1.ConditionFalse, Reason: ReasonNoConflicts, Message: "All clusters that export the service agree on it."}
	}
	reason, message := reasons(m.Conflicts)
	return metav1.Condition{Type: ConditionConflict, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// importConditions are those of the import: whether it can be used.
func importConditions(m *Merged, f *Facts, supported []corev1.IPFamily, im *local.ServiceImport) []metav1.Condition {
	c := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case f.Namespace != NamespaceGlobal:
		c.Reason, c.Message = ReasonNamespaceNotGlobal, notGlobal
	case len(supported) == 0:
		c.Reason = ReasonIPFamilyNotSupported
		c.Message = "The service has addresses of " + joined(m.Spec.IPFamilies) + ", and this cluster has " + strings.Join(f.Families, ",") + "."
	case !hasService(m, f, supported):
		c.Reason, c.Message = ReasonNoPorts, "No export has a port that a Service can have, and a Service with an address has at least one. Export a Service with ports."
	case f.Foreign != "":
		c.Reason, c.Message = ReasonPending, f.Foreign
	case !usable(m, f.Derived) || len(im.Spec.IPs) == 0 && !m.Headless():
		c.Reason, c.Message = ReasonPending, "The Service "+derivedServiceName(m)+", which has the addresses of the import, does not exist yet."
	case im.Status.EndpointSliceObjects == SlicesAbsent:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonReady, noSlices
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonReady, "The service can be used."
	}
	var before []metav1.Condition
	if f.Import != nil {
		before = f.Import.Status.Conditions
	}
	return dated(before, []metav1.Condition{c}, f.Now)
}

// dated gives conditions the time since when they have their status: that of the condition before
// while the status is the same, else now, in seconds.
func dated(before, conditions []metav1.Condition, now time.Time) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		at := slices.IndexFunc(before, func(o metav1.Condition) bool { return o.Type == c.Type && o.Status == c.Status })
		if at >= 0 && !before[at].LastTransitionTime.IsZero() {
			c.LastTransitionTime = before[at].LastTransitionTime
		}
	}
	return conditions
}
