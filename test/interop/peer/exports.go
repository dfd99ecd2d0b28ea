//go:build !before1.17

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func serviceExports() kind {
	return kind{
		name:   model.ServiceExports,
		prefix: mcstypes.ServiceExportStorePrefix,
		encode: func(o *model.Objects) []store.Key {
			return newKeys(o.ServiceExports, translated[mcstypes.MCSAPIServiceSpec])
		},
		creator: func(e model.Expect) store.KeyCreator {
			return mcstypes.KeyCreator(mcstypes.ClusterNameValidator(e.Cluster), mcstypes.NamespacedNameValidator())
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			return add(&into.ServiceExports, &key.(*mcstypes.ValidatingMCSAPIServiceSpec).MCSAPIServiceSpec)
		},
	}
}
