//go:build before1.18 && !before1.17

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// The release knows neither labels nor annotations of exports.

func setExportLabels(*mcstypes.MCSAPIServiceSpec, model.ServiceExport) {}

func modelExportLabels(*mcstypes.MCSAPIServiceSpec, *model.ServiceExport) {}
