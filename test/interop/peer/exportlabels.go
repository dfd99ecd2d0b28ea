//go:build !before1.18

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func setExportLabels(to *mcstypes.MCSAPIServiceSpec, e model.ServiceExport) {
	to.Labels, to.Annotations = e.Labels, e.Annotations
}

func modelExportLabels(from *mcstypes.MCSAPIServiceSpec, e *model.ServiceExport) {
	e.Labels, e.Annotations = from.Labels, from.Annotations
}
