//go:build before1.19 && !before1.17

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// The release knows neither families of addresses nor policies of traffic.

func setExportPolicies(*mcstypes.MCSAPIServiceSpec, model.ServiceExport) {}

func modelExportPolicies(*mcstypes.MCSAPIServiceSpec, *model.ServiceExport) {}
