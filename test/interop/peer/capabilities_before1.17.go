//go:build before1.17

package main

import (
	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// The release knows none of the newer capabilities.

func setCapabilities(*cmtypes.CiliumClusterConfigCapabilities, model.ClusterConfig) {}

func modelCapabilities(cmtypes.CiliumClusterConfigCapabilities, *model.ClusterConfig) {}
