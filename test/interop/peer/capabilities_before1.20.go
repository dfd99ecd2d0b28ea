//go:build before1.20 && !before1.17

package main

import (
	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func setCapabilities(to *cmtypes.CiliumClusterConfigCapabilities, c model.ClusterConfig) {
	to.ServiceExportsEnabled = c.ServiceExportsEnabled
}

func modelCapabilities(from cmtypes.CiliumClusterConfigCapabilities, c *model.ClusterConfig) {
	c.ServiceExportsEnabled = from.ServiceExportsEnabled
}
