//go:build !before1.20

package main

import (
	cmslice "github.com/cilium/cilium/pkg/clustermesh/types/endpointslice"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func endpointSlices() kind {
	return kind{
		name:   model.EndpointSlices,
		prefix: cmslice.EndpointSliceStorePrefix,
		encode: func(o *model.Objects) []store.Key {
			return newKeys(o.EndpointSlices, translated[cmslice.ClusterEndpointSlice])
		},
		creator: func(e model.Expect) store.KeyCreator {
			return cmslice.KeyCreator(cmslice.ClusterNameValidator(e.Cluster),
				cmslice.NamespacedNameValidator(), cmslice.ClusterIDValidator(&e.ClusterID))
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			return add(&into.EndpointSlices, &key.(*cmslice.ValidatingClusterEndpointSlice).ClusterEndpointSlice)
		},
	}
}
