//go:build !before1.18

package main

import (
	clusterstore "github.com/cilium/cilium/pkg/clustermesh/store"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

type (
	clusterService           = clusterstore.ClusterService
	validatingClusterService = clusterstore.ValidatingClusterService
)

func serviceStorePrefix() string { return clusterstore.ServiceStorePrefix }

func emptyService(namespace, name string) clusterService {
	return clusterstore.NewClusterService(name, namespace)
}

func serviceCreator(e model.Expect) store.KeyCreator {
	return clusterstore.KeyCreator(clusterstore.ClusterNameValidator(e.Cluster),
		clusterstore.NamespacedNameValidator(), clusterstore.ClusterIDValidator(&e.ClusterID))
}
