//go:build !before1.19

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func setExportPolicies(to *mcstypes.MCSAPIServiceSpec, e model.ServiceExport) {
	for _, f := range e.IPFamilies {
		to.IPFamilies = append(to.IPFamilies, corev1.IPFamily(f))
	}
	to.InternalTrafficPolicy = (*corev1.ServiceInternalTrafficPolicy)(e.InternalTrafficPolicy)
	to.TrafficDistribution = e.TrafficDistribution
}

func modelExportPolicies(from *mcstypes.MCSAPIServiceSpec, e *model.ServiceExport) {
	for _, f := range from.IPFamilies {
		e.IPFamilies = append(e.IPFamilies, string(f))
	}
	e.InternalTrafficPolicy = (*string)(from.InternalTrafficPolicy)
	e.TrafficDistribution = from.TrafficDistribution
}
